"""Small networks on which several tests build their experiments; tests put the duration before them."""

INCAST = """
[fabric]
kind = "star"
hosts = 5
[hosts]
rate = "10Gbps"
delay = "1us"
mtu = "1500B"
[switch]
queue = 16
[[workload]]
name = "answers"
kind = "incast"
to = "host0"
size = "40kB"
"""
RACKS = """
[fabric]
kind = "hybrid"
racks = 3
hosts_per_rack = 1
[hosts]
rate = "10Gbps"
[packet]
rate = "10Gbps"
delay = "5us"
[circuit]
rate = "100Gbps"
delay = "20us"
[voq]
small = 16
[schedule]
kind = "strobe"
day = "100us"
night = "20us"
"""
