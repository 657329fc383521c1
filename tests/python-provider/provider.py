#!/usr/bin/env python3
"""A provider of the IaaS contract in about 150 lines: Python 3 and nothing else. It binds nothing, it only remembers.

    python3 provider.py [PORT]

A starting point for a real one: put your cloud into Cloud.bind and Cloud.unbind. docs/provider.md says what is asked of it.
"""

import ipaddress
import json
import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ALLOCATE = "/v1/apis/network.iaas.io/ipam/allocate-ips"
RELEASE = "/v1/apis/network.iaas.io/ipam/release-ip"
MAC = re.compile(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}")
MAX_BODY = 1024 * 1024
# What a call of the cloud takes, in seconds. With a small budget there is no time for it.
CLOUD = float(os.environ.get("CLOUD", "0"))


class Refused(Exception):
    """Nothing was done: a status and why."""

    def __init__(self, status, why):
        super().__init__(why)
        self.status = status


class Cloud:
    """Which address is bound to which NIC, for whom."""

    def __init__(self):
        self.lock = threading.Lock()
        self.bound = {}

    def bind(self, pod, node, addresses):
        """Binds all addresses, or none."""
        with self.lock:
            for address, _, nic in addresses:
                holder = self.bound.get(address)
                if holder and holder["owner"] != (pod, node, nic):
                    raise Refused(409, f"ipAddress: {address} is bound for another pod")
            answer = []
            for address, subnet, nic in addresses:
                holder = self.bound.get(address) or {
                    "owner": (pod, node, nic),
                    "nic": (node, nic),
                    "vlan": self.free_vlan((node, nic)),
                    "mac": "02:" + ":".join(f"{byte:02x}" for byte in os.urandom(5)),
                }
                self.bound[address] = holder
                answer.append((address, subnet, nic, holder["mac"], holder["vlan"]))
            return answer

    def free_vlan(self, nic):
        used = {holder["vlan"] for holder in self.bound.values() if holder["nic"] == nic}
        for vlan in range(1, 4095):
            if vlan not in used:
                return vlan
        raise Refused(507, "parentNicMac: all VLAN ids of this NIC are in use")

    def unbind(self, address):
        """What is not bound is unbound: that is a success."""
        with self.lock:
            self.bound.pop(address, None)


def text(body, field, required=True):
    value = body.get(field, "")
    if not isinstance(value, str) or (required and not value):
        raise Refused(400, f"{field}: a text is required")
    return value


def place(body):
    """An address and the subnet that holds it."""
    try:
        address = ipaddress.ip_address(text(body, "ipAddress"))
        subnet = ipaddress.ip_network(text(body, "subnet"))
    except ValueError as why:
        raise Refused(400, f"ipAddress or subnet: {why}") from why
    if address not in subnet:
        raise Refused(400, f"subnet: {subnet} does not hold {address}")
    return body["ipAddress"], body["subnet"]


def nic(body, required):
    value = text(body, "parentNicMac", required)
    if value and not MAC.fullmatch(value):
        raise Refused(400, "parentNicMac: it is no MAC address")
    return value.lower()


def work(deadline):
    """Lets the cloud take its time, but begins nothing that does not fit the budget."""
    if time.monotonic() + CLOUD >= deadline:
        raise Refused(429, "X-Request-Timeout-Ms: too little time for the cloud; nothing was done")
    time.sleep(CLOUD)


def allocate(cloud, body, deadline):
    names = {field: text(body, field, False) for field in ("podName", "podNamespace", "podUID")}
    node = text(body, "nodeName")
    asked = body.get("iaasIPsAllocationRequest")
    if not isinstance(asked, list) or not asked or not all(isinstance(one, dict) for one in asked):
        raise Refused(400, "iaasIPsAllocationRequest: a list of addresses is required")
    addresses = [(*place(one), nic(one, True)) for one in asked]
    if len({address for address, _, _ in addresses}) < len(addresses):
        raise Refused(400, "iaasIPsAllocationRequest: an address is there twice")
    work(deadline)
    pod = names["podUID"] or (names["podNamespace"], names["podName"])
    bound = cloud.bind(pod, node, addresses)
    keys = ("ipAddress", "subnet", "parentNicMac", "macAddress", "vlanId")
    return {
        "podName": names["podName"],
        "podNamespace": names["podNamespace"],
        "nodeName": node,
        "iaasIPsAllocationResponse": [dict(zip(keys, one)) for one in bound],
    }


def release(cloud, body, deadline):
    for field in ("podName", "podNamespace", "podUID"):
        text(body, field, False)
    text(body, "nodeName")
    nic(body, False)
    address, _ = place(body)
    work(deadline)
    cloud.unbind(address)
    return {}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    calls = {ALLOCATE: allocate, RELEASE: release}

    def do_POST(self):
        received = time.monotonic()
        try:
            call = self.calls.get(self.path)
            if not call:
                raise Refused(404, "there is nothing here")
            body = self.read()
            budget = self.headers.get("X-Request-Timeout-Ms", "")
            if not re.fullmatch(r"[1-9][0-9]{0,14}", budget):
                raise Refused(400, "X-Request-Timeout-Ms: a positive number of milliseconds is required")
            self.answer(200, call(self.server.cloud, body, received + int(budget) / 1000))
        except Refused as why:
            self.answer(why.status, {"error": str(why)})

    def read(self):
        length = self.headers.get("Content-Length", "")
        if not length.isdigit() or int(length) > MAX_BODY:
            self.close_connection = True
            raise Refused(413, "Content-Length: it is missing, or the body is too large")
        raw = self.rfile.read(int(length))
        if self.headers.get_content_type() != "application/json":
            raise Refused(400, "Content-Type: it must be application/json")
        try:
            body = json.loads(raw)
        except ValueError as why:
            raise Refused(400, f"body: {why}") from why
        if not isinstance(body, dict):
            raise Refused(400, "body: an object is required")
        return body

    def answer(self, status, body):
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), Handler)
        self.cloud = Cloud()

    def handle_error(self, *_):
        """A client that is gone is its own affair."""


if __name__ == "__main__":
    server = Server(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
