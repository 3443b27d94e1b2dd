"""portrayal view: what it refuses, what it prints, and how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from portrayal.cli import view
from portrayal.report.live import ViewServer
from tests.report.test_live import encoded_image, example_results


@pytest.fixture
def folder(tmp_path):
    example_results().save(tmp_path / "audit")
    return tmp_path / "audit"


@pytest.fixture
def recorded_calls(monkeypatch):
    """Replace serving and the browser; return the servers that would run and the pages opened."""
    calls: dict[str, list] = {"servers": [], "opened": []}
    monkeypatch.setattr(ViewServer, "serve_forever", lambda self: calls["servers"].append(self))
    monkeypatch.setattr(view.webbrowser, "open", calls["opened"].append)
    return calls


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.1", "example.org", ""])
def test_other_hosts_need_allow_remote(command, folder, recorded_calls, host):
    code, out, err = command("view", folder, "--host", host, "--no-open")
    assert code == 2
    assert "--allow-remote" in err
    assert "http" not in out
    assert recorded_calls["servers"] == []


def test_other_machines_get_a_token(command, folder, recorded_calls):
    code, out, err = command("view", folder, "--host", "0.0.0.0", "--allow-remote", "--no-open")
    assert code == 0
    (server,) = recorded_calls["servers"]
    assert out.count(server.guard.token) == 1
    assert "not encrypted" in err


def test_it_says_where_it_is_and_opens_no_browser_without_a_screen(command, folder, recorded_calls):
    code, out, _ = command("view", folder)
    assert code == 0
    assert re.search(r"http://127\.0\.0\.1:\d+/\s", out)
    assert "token" not in out
    assert recorded_calls["opened"] == []


def test_it_opens_the_page_on_a_screen_without_no_open(command, folder, recorded_calls, monkeypatch):
    monkeypatch.setattr(view, "_has_screen", lambda: True)
    command("view", folder, "--no-open")
    assert recorded_calls["opened"] == []
    command("view", folder)
    assert recorded_calls["opened"] == [recorded_calls["servers"][1].address]


def test_a_folder_without_results_is_an_error(command, tmp_path, recorded_calls):
    for path in (tmp_path, tmp_path / "nowhere"):
        code, _, err = command("view", path, "--no-open")
        assert code == 2
        assert "no results file" in err
    (tmp_path / "results.json").write_text("{")
    code, _, err = command("view", tmp_path, "--no-open")
    assert code == 2
    assert "expected JSON" in err


def test_broken_evidence_is_an_error(command, folder, recorded_calls):
    (folder / "evidence.parquet").write_bytes(b"PAR1 nothing PAR1")
    code, _, err = command("view", folder, "--no-open")
    assert code == 2
    assert "evidence.parquet: expected a Parquet file" in err


def test_a_port_in_use_is_an_error(command, folder, recorded_calls):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        code, _, err = command("view", folder, "--port", port, "--no-open")
    assert code == 2
    assert f"port {port} of 127.0.0.1" in err
    assert err.count("\n") == 1


def test_images_are_served(command, folder, recorded_calls, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    code, _, err = command("view", folder, "--images", empty, "--no-open")
    assert code == 2
    assert "no images" in err
    assert command("view", folder, "--images", tmp_path / "nowhere", "--no-open")[0] == 2
    (empty / "COCO_val2014_000000000042.jpg").write_bytes(encoded_image("JPEG"))
    assert command("view", folder, "--images", empty, "--no-open")[0] == 0
    response = recorded_calls["servers"][-1].routes.respond("/image?image=42")
    assert response.content_type == "image/jpeg"
    study_images = folder / "study" / "images"  # as the demo has them
    study_images.mkdir(parents=True)
    (study_images / "7.png").write_bytes(encoded_image())
    command("view", folder, "--no-open")
    assert recorded_calls["servers"][-1].routes.respond("/image?image=7").content_type == "image/png"


@pytest.mark.parametrize("signal_sent", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(folder, signal_sent):
    program = [sys.executable, "-m", "portrayal", "view", str(folder), "--no-open"]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            address = urlsplit(re.search(r"http://\S+", process.stdout.readline()).group())
            connection = http.client.HTTPConnection(address.hostname, address.port, timeout=10)
            connection.request("GET", "/api/results")
            assert connection.getresponse().status == 200
            process.send_signal(signal_sent)  # while a connection is still open
            out, err = process.communicate(timeout=10)
        finally:
            process.kill()
            connection.close()
    assert process.returncode == 130
    assert "Traceback" not in out + err
    assert "Stopped." in err
