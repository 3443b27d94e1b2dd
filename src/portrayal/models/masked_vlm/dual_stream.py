"""A dual-stream network: separate encoders for images and texts, then a cross-encoder (ALBEF and TCL).

Modules are named as in the authors' published checkpoints, so that a state dict loads by name.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from portrayal.models.masked_vlm.network import (
    DualEncoder,
    ImageEmbeddings,
    VLMNetwork,
    extended_attention_mask,
    init_weights,
)

PIXEL_MEAN = (0.48145466, 0.4578275, 0.40821073)
PIXEL_STD = (0.26862954, 0.26130258, 0.27577711)


@dataclass(frozen=True)
class DualShape:
    """The layer sizes of a dual-stream network. The defaults are those of the published ALBEF and TCL.

    Field names are keys of saved `config.json` files.
    """

    image_size: int = 256  # side of the square images, in pixels
    patch_size: int = 16
    image_width: int = 768
    image_layers: int = 12
    image_heads: int = 12
    vocab_size: int = 30522
    text_width: int = 768
    text_layers: int = 12
    fusion_layer: int = 6  # text layers from this index on have cross-attention to the image
    text_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    embed_dim: int = 256  # size of the features that are compared in contrastive learning and retrieval
    dropout: float = 0.1  # in training only


class DualNetwork(VLMNetwork, DualEncoder):
    """The first text layers process the text alone; those from `fusion_layer` on also attend to the image."""

    has_match_head = True

    def __init__(self, shape: DualShape):
        super().__init__(PIXEL_MEAN, PIXEL_STD)
        self.shape, self.image_size, self.patch_size = shape, shape.image_size, shape.patch_size
        self.visual_encoder = _VisionEncoder(shape)
        self.text_encoder = _TextEncoder(shape)
        self.vision_proj = nn.Linear(shape.image_width, shape.embed_dim)
        self.text_proj = nn.Linear(shape.text_width, shape.embed_dim)
        self.temp = nn.Parameter(torch.tensor(0.07))
        self.itm_head = nn.Linear(shape.text_width, 2)
        init_weights(self)

    def encode_image(self, pixels: Tensor) -> ImageEmbeddings:
        return ImageEmbeddings(self.visual_encoder(self.normalize(pixels)))

    def cross_encode(self, images: ImageEmbeddings | None, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states of the texts; without an image, cross-attention is skipped."""
        return self.cross_encode_text(images, self.encode_text(ids, attention_mask), attention_mask)

    def encode_text(self, ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the hidden states after the text-only layers."""
        bert = self.text_encoder.bert
        hidden: Tensor = bert.embeddings(ids)
        for layer in bert.encoder.layer[: self.shape.fusion_layer]:
            hidden = layer(hidden, extended_attention_mask(attention_mask), None)
        return hidden

    def cross_encode_text(
        self, images: ImageEmbeddings | None, text_states: Tensor, attention_mask: Tensor
    ) -> Tensor:
        hidden = text_states
        for layer in self.text_encoder.bert.encoder.layer[self.shape.fusion_layer :]:
            hidden = layer(hidden, extended_attention_mask(attention_mask), images)
        return hidden

    def word_logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.text_encoder.cls.predictions(hidden)
        return logits

    def match_logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self.itm_head(hidden[:, 0])
        return logits

    def image_features(self, images: ImageEmbeddings) -> Tensor:
        return functional.normalize(self.vision_proj(images.tokens[:, 0]), dim=-1)

    def text_features(self, text_states: Tensor) -> Tensor:
        return functional.normalize(self.text_proj(text_states[:, 0]), dim=-1)

    def temperature(self) -> Tensor:
        return self.temp.clamp(0.001, 0.5)


class _PatchEmbedding(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.proj = nn.Conv2d(3, shape.image_width, shape.patch_size, shape.patch_size)

    def forward(self, pixels: Tensor) -> Tensor:
        # The convolution is computed as a matrix product of patches, whose backward pass is several times faster.
        patch_size = self.proj.kernel_size[0]
        patches = (
            pixels.unflatten(3, (-1, patch_size)).unflatten(2, (-1, patch_size)).permute(0, 2, 4, 1, 3, 5)
        )
        return functional.linear(
            patches.flatten(3).flatten(1, 2), self.proj.weight.flatten(1), self.proj.bias
        )


class _VisionAttention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch_size, length, width = x.shape
        # Three products are faster than one: autograd need not concatenate their gradients.
        weights, biases = self.qkv.weight.chunk(3), self.qkv.bias.chunk(3)
        query, key, value = (
            functional.linear(x, weight, bias).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for weight, bias in zip(weights, biases, strict=True)
        )
        attended = functional.scaled_dot_product_attention(query, key, value)
        output: Tensor = self.proj(attended.transpose(1, 2).reshape(batch_size, length, width))
        return output


class _VisionMLP(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.fc2(functional.gelu(self.fc1(x)))
        return output


class _VisionBlock(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.norm1 = nn.LayerNorm(shape.image_width, eps=1e-6)
        self.attn = _VisionAttention(shape.image_width, shape.image_heads)
        self.norm2 = nn.LayerNorm(shape.image_width, eps=1e-6)
        self.mlp = _VisionMLP(shape.image_width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x))
        output: Tensor = x + self.mlp(self.norm2(x))
        return output


class _VisionEncoder(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        n_patches = (shape.image_size // shape.patch_size) ** 2
        self.patch_embed = _PatchEmbedding(shape)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, shape.image_width))
        self.pos_embed = nn.Parameter(torch.zeros(1, n_patches + 1, shape.image_width))
        self.blocks = nn.ModuleList([_VisionBlock(shape) for _ in range(shape.image_layers)])
        self.norm = nn.LayerNorm(shape.image_width, eps=1e-6)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        nn.init.trunc_normal_(self.cls_token, std=0.02)

    def forward(self, pixels: Tensor) -> Tensor:
        x = self.patch_embed(pixels)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], dim=1) + self.pos_embed
        for block in self.blocks:
            x = block(x)
        output: Tensor = self.norm(x)
        return output


class _Embeddings(nn.Module):
    position_ids: Tensor

    def __init__(self, shape: DualShape):
        super().__init__()
        self.word_embeddings = nn.Embedding(shape.vocab_size, shape.text_width, padding_idx=0)
        self.position_embeddings = nn.Embedding(shape.max_position_embeddings, shape.text_width)
        self.token_type_embeddings = nn.Embedding(2, shape.text_width)
        self.LayerNorm = nn.LayerNorm(shape.text_width, eps=1e-12)
        self.dropout = nn.Dropout(shape.dropout)
        self.register_buffer("position_ids", torch.arange(shape.max_position_embeddings).expand(1, -1))

    def forward(self, ids: Tensor) -> Tensor:
        positions = self.position_embeddings.weight[: ids.shape[1]]
        x = self.word_embeddings(ids) + self.token_type_embeddings.weight[0] + positions
        output: Tensor = self.dropout(self.LayerNorm(x))
        return output


class _SelfAttention(nn.Module):
    def __init__(self, shape: DualShape, context_width: int):
        super().__init__()
        self.heads, self.dropout = shape.text_heads, shape.dropout
        self.query = nn.Linear(shape.text_width, shape.text_width)
        self.key = nn.Linear(context_width, shape.text_width)
        self.value = nn.Linear(context_width, shape.text_width)

    def forward(self, x: Tensor, context: Tensor | ImageEmbeddings, mask: Tensor | None) -> Tensor:
        query = self._split_heads(self.query(x))
        key, value = (
            self._key_value(context) if isinstance(context, Tensor) else context.cached(self, self._key_value)
        )
        dropout = self.dropout if self.training else 0.0
        attended = functional.scaled_dot_product_attention(query, key, value, mask, dropout)
        return attended.transpose(1, 2).flatten(2)

    def _key_value(self, context: Tensor) -> tuple[Tensor, Tensor]:
        return self._split_heads(self.key(context)), self._split_heads(self.value(context))

    def _split_heads(self, x: Tensor) -> Tensor:
        heads: Tensor = x.unflatten(2, (self.heads, -1)).transpose(1, 2)
        return heads


class _ResidualOutput(nn.Module):
    """A linear layer followed by dropout, the residual connection and layer normalization."""

    def __init__(self, in_features: int, shape: DualShape):
        super().__init__()
        self.dense = nn.Linear(in_features, shape.text_width)
        self.LayerNorm = nn.LayerNorm(shape.text_width, eps=1e-12)
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        output: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + residual)
        return output


class _Attention(nn.Module):
    def __init__(self, shape: DualShape, context_width: int):
        super().__init__()
        self.self = _SelfAttention(shape, context_width)
        self.output = _ResidualOutput(shape.text_width, shape)

    def forward(self, x: Tensor, context: Tensor | ImageEmbeddings, mask: Tensor | None) -> Tensor:
        output: Tensor = self.output(self.self(x, context, mask), x)
        return output


class _Intermediate(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.dense = nn.Linear(in_features, out_features)


class _TextLayer(nn.Module):
    def __init__(self, shape: DualShape, has_cross_attention: bool):
        super().__init__()
        self.attention = _Attention(shape, shape.text_width)
        if has_cross_attention:
            self.crossattention = _Attention(shape, shape.image_width)
        self.intermediate = _Intermediate(shape.text_width, shape.intermediate_size)
        self.output = _ResidualOutput(shape.intermediate_size, shape)

    def forward(self, x: Tensor, mask: Tensor | None, images: ImageEmbeddings | None) -> Tensor:
        x = self.attention(x, x, mask)
        if images is not None:
            # All texts of an image form one sequence of queries, so that they attend to it in one call.
            queries = x.reshape(len(images.tokens), images.texts_per_image * x.shape[1], x.shape[2])
            x = self.crossattention(queries, images, extended_attention_mask(images.attention_mask)).view(
                x.shape
            )
        output: Tensor = self.output(functional.gelu(self.intermediate.dense(x)), x)
        return output


class _BertLayers(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.layer = nn.ModuleList(
            [_TextLayer(shape, index >= shape.fusion_layer) for index in range(shape.text_layers)]
        )


class _Bert(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.embeddings = _Embeddings(shape)
        self.encoder = _BertLayers(shape)


class _Transform(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.dense = nn.Linear(width, width)
        self.LayerNorm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = self.LayerNorm(functional.gelu(self.dense(x)))
        return output


class _Predictions(nn.Module):
    def __init__(self, shape: DualShape, embedding: nn.Embedding):
        super().__init__()
        self.transform = _Transform(shape.text_width)
        self.decoder = nn.Linear(shape.text_width, shape.vocab_size)
        self.decoder.weight = embedding.weight  # tied to the word embeddings
        self.bias = nn.Parameter(torch.zeros(shape.vocab_size))
        self.decoder.bias = self.bias

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.decoder(self.transform(x))
        return logits


class _MLMHead(nn.Module):
    def __init__(self, shape: DualShape, embedding: nn.Embedding):
        super().__init__()
        self.predictions = _Predictions(shape, embedding)


class _TextEncoder(nn.Module):
    def __init__(self, shape: DualShape):
        super().__init__()
        self.bert = _Bert(shape)
        self.cls = _MLMHead(shape, self.bert.embeddings.word_embeddings)
