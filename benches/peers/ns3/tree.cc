// The tree of the benchmark in ns-3: DX's 192 servers, DCTCP, the flows of a list, as ../../tree.toml.
//
// 32 ToR switches of 6 hosts, 8 pods of 4 ToR and 2 aggregation switches, 8 core switches; every link 10 Gb/s and 1 us,
// 1500-byte packets, ports of 1000 packets that mark above 65. The list is the one that our side has run
// (`source destination class port bytes start`, one flow per line after their number): both run the same flows.
// Where it differs from our side: ECMP hashes addresses and not ports, with another hash, so that a flow may meet
// others on its way; ns-3 has neither RACK-TLP nor quick acknowledgements at the start; and its delayed
// acknowledgements wait for 1 ms and not 40: its windows fall to one packet, and with 40 ms one flow in thirty waits
// for them three times in a row.

#include "marking_fifo.h"

#include <fstream>

using namespace ns3;

namespace
{

constexpr uint32_t PODS = 8;
constexpr uint32_t TORS = 4;         // per pod
constexpr uint32_t HOSTS = 6;        // per ToR switch
constexpr uint32_t AGGREGATIONS = 2; // per pod
constexpr uint32_t UPLINKS = 4;      // of an aggregation switch
constexpr uint32_t CORES = AGGREGATIONS * UPLINKS;
constexpr uint32_t ALL_TORS = PODS * TORS;
constexpr uint32_t ALL_HOSTS = ALL_TORS * HOSTS;

constexpr uint32_t MTU = 1500 - 2; // and 2 bytes of PPP
const DataRate RATE("10Gbps");
const Time DELAY = MicroSeconds(1);

/// The interfaces that joining two nodes has made.
struct Ends
{
    uint32_t a;
    uint32_t b;
};

/// Gives a switch's port its queue.
void
Mark(Ptr<Node> node, Ptr<NetDevice> device)
{
    node->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, Create<peer::MarkingFifo>(1000, 65));
}

/// Joins two switches.
Ends
JoinSwitches(Ptr<Node> a, Ptr<Node> b)
{
    static uint32_t links = 0;
    const uint32_t network = (12U << 24) | (links++ << 2);
    auto one = peer::NewDevice(a, RATE, MTU, 1, true);
    auto other = peer::NewDevice(b, RATE, MTU, 1, true);
    peer::Join(one, other, DELAY);
    const Ends ends{peer::AddInterface(a, one, Ipv4Address(network | 1)),
                    peer::AddInterface(b, other, Ipv4Address(network | 2))};
    Mark(a, one);
    Mark(b, other);
    return ends;
}

using Table = std::vector<peer::NextHops>;

/// Which way each switch sends to each host, told while the tree is built: upward first, then what is below.
struct Tables
{
    std::vector<Table> tors{ALL_TORS, Table(ALL_HOSTS, {0})};
    std::vector<Table> aggregations{PODS * AGGREGATIONS, Table(ALL_HOSTS, {0})};
    std::vector<Table> cores{CORES, Table(ALL_HOSTS, {0})};
};

void
Point(Table& table, uint32_t firstHost, uint32_t hosts, uint32_t interface)
{
    std::fill_n(table.begin() + firstHost, hosts, peer::NextHops{interface});
}

/// The first of consecutive uplinks, and how many there are.
void
PointUp(Table& table, uint32_t interface, bool first)
{
    for (auto& hops : table)
    {
        hops = first ? peer::NextHops{interface} : peer::NextHops{hops.first, hops.count + 1};
    }
}

void
Build(NodeContainer hosts, NodeContainer tors, NodeContainer aggregations, NodeContainer cores)
{
    Tables tables;
    for (uint32_t t = 0; t < ALL_TORS; ++t)
    {
        const uint32_t pod = t / TORS;
        for (uint32_t j = 0; j < AGGREGATIONS; ++j)
        {
            const uint32_t g = pod * AGGREGATIONS + j;
            PointUp(tables.tors[t], JoinSwitches(tors.Get(t), aggregations.Get(g)).a, j == 0);
        }
    }
    for (uint32_t g = 0; g < PODS * AGGREGATIONS; ++g)
    {
        for (uint32_t j = 0; j < UPLINKS; ++j)
        {
            const uint32_t c = g % AGGREGATIONS * UPLINKS + j;
            const auto ends = JoinSwitches(aggregations.Get(g), cores.Get(c));
            PointUp(tables.aggregations[g], ends.a, j == 0);
            Point(tables.cores[c], g / AGGREGATIONS * TORS * HOSTS, TORS * HOSTS, ends.b);
        }
        // The links to its ToR switches were made first, in their order.
        for (uint32_t j = 0; j < TORS; ++j)
        {
            Point(tables.aggregations[g], (g / AGGREGATIONS * TORS + j) * HOSTS, HOSTS, 1 + j);
        }
    }
    for (uint32_t h = 0; h < ALL_HOSTS; ++h)
    {
        auto tor = tors.Get(h / HOSTS);
        auto nic = peer::NewDevice(hosts.Get(h), RATE, MTU, 100000);
        auto port = peer::NewDevice(tor, RATE, MTU, 1, true);
        peer::Join(nic, port, DELAY);
        peer::AddInterface(hosts.Get(h), nic, peer::HostAddress(h));
        Point(tables.tors[h / HOSTS], h, 1, peer::AddInterface(tor, port, peer::SwitchPortAddress(h)));
        Mark(tor, port);
    }
    uint32_t salt = 0;
    for (uint32_t i = 0; i < tors.GetN(); ++i)
    {
        peer::SetTable(tors.Get(i), tables.tors[i], salt++);
    }
    for (uint32_t i = 0; i < aggregations.GetN(); ++i)
    {
        peer::SetTable(aggregations.Get(i), tables.aggregations[i], salt++);
    }
    for (uint32_t i = 0; i < cores.GetN(); ++i)
    {
        peer::SetTable(cores.Get(i), tables.cores[i], salt++);
    }
}

/// One flow of the list.
struct Flow
{
    uint32_t src;
    uint32_t dst;
    uint64_t bytes;
    double start;
    uint64_t received = 0;
    double finish = -1;

    void OnReceived(Ptr<const Packet> p, const Address&)
    {
        received += p->GetSize();
        if (received >= bytes)
        {
            finish = Simulator::Now().GetSeconds();
        }
    }
};

std::vector<Flow>
ReadFlows(const std::string& file)
{
    std::ifstream in(file);
    size_t count = 0;
    in >> count;
    std::vector<Flow> flows(count);
    uint32_t group;
    uint32_t port;
    for (auto& flow : flows)
    {
        in >> flow.src >> flow.dst >> group >> port >> flow.bytes >> flow.start;
    }
    NS_ABORT_MSG_IF(!in || flows.empty(), "no flows in " << file);
    return flows;
}

} // namespace

int
main(int argc, char** argv)
{
    double duration = 1;
    bool count = false;
    std::string list;
    std::string times;
    CommandLine options;
    options.AddValue("duration", "simulated seconds at most", duration);
    options.AddValue("count", "count packet-hops (slower)", count);
    options.AddValue("flows", "the list of flows", list);
    options.AddValue("times", "write each flow's completion time in us to this file", times);
    options.Parse(argc, argv);

    const uint32_t segment = MTU - 52;
    peer::SetTcp({TcpDctcp::GetTypeId(), segment, 1 << 20, MilliSeconds(200), MilliSeconds(1)});
    NodeContainer hosts(ALL_HOSTS);
    NodeContainer tors(ALL_TORS);
    NodeContainer aggregations(PODS * AGGREGATIONS);
    NodeContainer cores(CORES);
    for (const auto& nodes : {hosts, tors, aggregations, cores})
    {
        peer::InstallStack(nodes);
    }
    Build(hosts, tors, aggregations, cores);

    auto flows = ReadFlows(list);
    std::vector<Ptr<PacketSink>> sinks;
    uint16_t port = 5000;
    for (auto& flow : flows)
    {
        const auto start = Seconds(flow.start);
        auto from = hosts.Get(flow.src);
        auto to = hosts.Get(flow.dst);
        auto sink = peer::AddBulkFlow(from, to, flow.dst, port++, start, segment, flow.bytes);
        sink->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::OnReceived, &flow));
        sinks.push_back(sink);
    }
    peer::RunAndReport(Seconds(duration), count, sinks, segment);
    if (!times.empty())
    {
        std::ofstream out(times);
        for (const auto& flow : flows)
        {
            out << flow.bytes << ' ' << (flow.finish < 0 ? -1 : (flow.finish - flow.start) * 1e6) << '\n';
        }
    }
    return 0;
}
