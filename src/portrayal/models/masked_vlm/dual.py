"""A network that reads pictures and words apart, then together: the architecture of ALBEF and TCL.

Parts are named as in the authors' published checkpoints, so that a state dict finds its places name by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from portrayal.models.masked_vlm.network import Comparable, Looked, Network, normal_weights, token_mask

MEAN = (0.48145466, 0.4578275, 0.40821073)
DEVIATION = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class DualShape:
    """How large a network is. The defaults are those of the published ALBEF and TCL."""

    side: int = 256  # of a picture, in pixels
    patch: int = 16
    picture_width: int = 768
    picture_layers: int = 12
    picture_heads: int = 12
    words: int = 30522
    width: int = 768
    layers: int = 12  # those from `fusion` on also look at the picture
    fusion: int = 6
    heads: int = 12
    inner: int = 3072
    positions: int = 512
    compared: int = 256  # the width in which pictures and texts are compared
    dropout: float = 0.1  # while training only


class DualNetwork(Network, Comparable):
    """Words first read each other; the later layers read each other and the picture."""

    matching = True

    def __init__(self, shape: DualShape):
        super().__init__(MEAN, DEVIATION)
        self.shape, self.side, self.patch = shape, shape.side, shape.patch
        self.visual_encoder = _PictureEncoder(shape)
        self.text_encoder = _TextEncoder(shape)
        self.vision_proj = nn.Linear(shape.picture_width, shape.compared)
        self.text_proj = nn.Linear(shape.width, shape.compared)
        self.temp = nn.Parameter(torch.tensor(0.07))
        self.itm_head = nn.Linear(shape.width, 2)
        normal_weights(self)

    def look(self, pictures: Tensor) -> Looked:
        return Looked(self.visual_encoder(self.normalised(pictures)))

    def fuse(self, looked: Looked | None, ids: Tensor, there: Tensor) -> Tensor:
        """Without a picture the later layers skip their look at it."""
        return self.fuse_read(looked, self.read(ids, there), there)

    def read(self, ids: Tensor, there: Tensor) -> Tensor:
        """What the layers before the fusion make of a text."""
        bert = self.text_encoder.bert
        hidden: Tensor = bert.embeddings(ids)
        for layer in bert.encoder.layer[: self.shape.fusion]:
            hidden = layer(hidden, token_mask(there), None)
        return hidden

    def fuse_read(self, looked: Looked | None, read: Tensor, there: Tensor) -> Tensor:
        hidden = read
        for layer in self.text_encoder.bert.encoder.layer[self.shape.fusion :]:
            hidden = layer(hidden, token_mask(there), looked)
        return hidden

    def words(self, hidden: Tensor) -> Tensor:
        made: Tensor = self.text_encoder.cls.predictions(hidden)
        return made

    def match(self, hidden: Tensor) -> Tensor:
        scores: Tensor = self.itm_head(hidden[:, 0])
        return scores

    def picture_vectors(self, looked: Looked) -> Tensor:
        return functional.normalize(self.vision_proj(looked.tokens[:, 0]), dim=-1)

    def text_vectors(self, read: Tensor) -> Tensor:
        return functional.normalize(self.text_proj(read[:, 0]), dim=-1)

    def temperature(self) -> Tensor:
        return self.temp.clamp(0.001, 0.5)


class _Patches(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.proj = nn.Conv2d(3, shape.picture_width, shape.patch, shape.patch)

    def forward(self, pictures: Tensor) -> Tensor:
        # A convolution as a product of patches: its way back to the pixels is several times faster.
        side = self.proj.kernel_size[0]
        rows = pictures.unflatten(3, (-1, side)).unflatten(2, (-1, side)).permute(0, 2, 4, 1, 3, 5)
        return functional.linear(rows.flatten(3).flatten(1, 2), self.proj.weight.flatten(1), self.proj.bias)


class _PictureAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        many, length, width = x.shape
        # Apart, so that no gradient has to be put together from three.
        weights, biases = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        query, key, value = (
            functional.linear(x, weight, bias).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for weight, bias in zip(weights, biases, strict=True)
        )
        seen = functional.scaled_dot_product_attention(query, key, value)
        made: Tensor = self.proj(seen.transpose(1, 2).reshape(many, length, width))
        return made


class _PictureInner(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return made


class _PictureLayer(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.picture_width, eps=1e-6)
        self.attn = _PictureAttention(shape.picture_width, shape.picture_heads)
        self.norm2 = nn.LayerNorm(shape.picture_width, eps=1e-6)
        self.mlp = _PictureInner(shape.picture_width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        made: Tensor = x + self.mlp(self.norm2(x))
        return made


class _PictureEncoder(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        patches = (shape.side // shape.patch) ** 2
        self.patch_embed = _Patches(shape)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, shape.picture_width))
        self.pos_embed = nn.Parameter(torch.zeros(1, patches + 1, shape.picture_width))
        self.blocks = nn.ModuleList([_PictureLayer(shape) for _ in range(shape.picture_layers)])
        self.norm = nn.LayerNorm(shape.picture_width, eps=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.cls_token, std=0.02)

    def forward(self, pictures: Tensor) -> Tensor:
        x = self.patch_embed(pictures)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        made: Tensor = self.norm(x)
        return made


class _Embeddings(nn.Module):
    position_ids: Tensor

    def __init__(self, shape: DualShape):
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.words, shape.width, padding_idx=0)
        self.position_embeddings = nn.Embedding(shape.positions, shape.width)
        self.token_type_embeddings = nn.Embedding(2, shape.width)
        self.LayerNorm = nn.LayerNorm(shape.width, eps=1e-12)
        self.dropout = nn.Dropout(shape.dropout)
        self.register_buffer("position_ids", torch.arange(shape.positions).expand(1, -1))

    def forward(self, ids: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: ids.shape[1]]
        x = self.word_embeddings(ids) + self.token_type_embeddings.weight[0] + places
        made: Tensor = self.dropout(self.LayerNorm(x))
        return made


class _SelfAttention(nn.Module):
    def __init__(self, shape: DualShape, seen_width: int):
        super().__init__()
        self.heads, self.dropout = shape.heads, shape.dropout
        self.query = nn.Linear(shape.width, shape.width)
        self.key = nn.Linear(seen_width, shape.width)
        self.value = nn.Linear(seen_width, shape.width)

    def forward(self, x: Tensor, seen: Tensor | Looked, mask: Tensor | None) -> Tensor:
        query = self._heads(self.query(x))
        key, value = self._of(seen) if isinstance(seen, Tensor) else seen.once(self, self._of)
        dropout = self.dropout if self.training else 0.0
        made = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
        return made.transpose(1, 2).flatten(2)

    def _of(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self.key(seen)), self._heads(self.value(seen))

    def _heads(self, x: Tensor) -> Tensor:
        made: Tensor = x.unflatten(2, (self.heads, -1)).transpose(1, 2)
        return made


class _Added(nn.Module):
    """A projection, added to what it was made from."""

    def __init__(self, given: int, shape: DualShape):
        super().__init__()
        self.dense = nn.Linear(given, shape.width)
        self.LayerNorm = nn.LayerNorm(shape.width, eps=1e-12)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, origin: Tensor) -> Tensor:
        made: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + origin)
        return made


class _Attention(nn.Module):
    def __init__(self, shape: DualShape, seen_width: int):
        super().__init__()
        self.self = _SelfAttention(shape, seen_width)
        self.output = _Added(shape.width, shape)

    def forward(self, x: Tensor, seen: Tensor | Looked, mask: Tensor | None) -> Tensor:
        made: Tensor = self.output(self.self(x, seen, mask), x)
        return made


class _Dense(nn.Module):
    def __init__(self, given: int, made: int):
        super().__init__()
        self.dense = nn.Linear(given, made)


class _TextLayer(nn.Module):
    def __init__(self, shape: DualShape, sees: bool):
        super().__init__()
        self.attention = _Attention(shape, shape.width)
        if sees:
            self.crossattention = _Attention(shape, shape.picture_width)
        self.intermediate = _Dense(shape.width, shape.inner)
        self.output = _Added(shape.inner, shape)

    def forward(self, x: Tensor, mask: Tensor | None, looked: Looked | None) -> Tensor:
        x = self.attention(x, x, mask)
        if looked is not None:
            # All texts of a picture look at it in one go.
            rows = x.reshape(len(looked.tokens), looked.texts * x.shape[1], x.shape[2])
            x = self.crossattention(rows, looked, token_mask(looked.there)).view(x.shape)
        made: Tensor = self.output(functional.gelu(self.intermediate.dense(x)), x)
        return made


class _Layers(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.layer = nn.ModuleList(
            [_TextLayer(shape, place >= shape.fusion) for place in range(shape.layers)]
        )


class _Bert(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.embeddings = _Embeddings(shape)
        self.encoder = _Layers(shape)


class _Transform(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.LayerNorm(functional.gelu(self.dense(x)))
        return made


class _Predictions(nn.Module):
    def __init__(self, shape: DualShape, embedding: nn.Embedding):
        super().__init__()
        self.transform = _Transform(shape.width)
        self.decoder = nn.Linear(shape.width, shape.words)
        self.decoder.weight = embedding.weight  # words are predicted by the vectors they are read with
        self.bias = nn.Parameter(torch.zeros(shape.words))
        self.decoder.bias = self.bias

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = self.decoder(self.transform(x))
        return made


class _Head(nn.Module):
    def __init__(self, shape: DualShape, embedding: nn.Embedding):
        super().__init__()
        self.predictions = _Predictions(shape, embedding)


class _TextEncoder(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.bert = _Bert(shape)
        self.cls = _Head(shape, self.bert.embeddings.word_embeddings)
