// The incast of the benchmark in ns-3: 20 DCTCP senders into one 10 Gb/s port for 0.5 s, as ../../incast.toml.
//
// 21 hosts on one switch, 10 Gb/s and 5 us a link, 1500-byte packets, a port of 1000 packets that marks above 65.
// Where it differs from our side: ns-3 has neither RACK-TLP nor quick acknowledgements at the start, and its senders
// start 7 us apart where ours start at random within the same 140 us.

#include "marking_fifo.h"

using namespace ns3;

int
main(int argc, char** argv)
{
    uint32_t senders = 20;
    double duration = 0.5;
    bool count = false;
    CommandLine options;
    options.AddValue("senders", "hosts that send to the last one", senders);
    options.AddValue("duration", "simulated seconds", duration);
    options.AddValue("count", "count packet-hops (slower)", count);
    options.Parse(argc, argv);

    const uint32_t mtu = 1500 - 2; // and 2 bytes of PPP
    const uint32_t segment = mtu - 52;
    const DataRate rate("10Gbps");
    peer::SetTcp({TcpDctcp::GetTypeId(), segment, 256 << 10, MilliSeconds(200), MilliSeconds(40)});

    NodeContainer hosts(senders + 1);
    NodeContainer fabric(1);
    peer::InstallStack(hosts);
    peer::InstallStack(fabric);
    std::vector<peer::NextHops> table;
    for (uint32_t h = 0; h <= senders; ++h)
    {
        auto nic = peer::NewDevice(hosts.Get(h), rate, mtu, 100000);
        auto port = peer::NewDevice(fabric.Get(0), rate, mtu, 1, true);
        peer::Join(nic, port, MicroSeconds(5));
        peer::AddInterface(hosts.Get(h), nic, peer::HostAddress(h));
        table.push_back({peer::AddInterface(fabric.Get(0), port, peer::SwitchPortAddress(h))});
        fabric.Get(0)->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(port,
                                                                                Create<peer::MarkingFifo>(1000, 65));
    }
    peer::SetTable(fabric.Get(0), table);

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t h = 0; h < senders; ++h)
    {
        const Time start = MicroSeconds(100 + 7 * h);
        sinks.push_back(peer::AddBulkFlow(hosts.Get(h), hosts.Get(senders), senders, 5000 + h, start, segment));
    }
    peer::RunAndReport(Seconds(duration), count, sinks, segment);
    return 0;
}
