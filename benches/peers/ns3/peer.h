// What the ns-3 programs of the benchmark share: cheap routing, links, TCP settings, counts and the report.
//
// Every choice here is generous to ns-3, so that a ratio against it is a lower bound:
// - routing takes constant time (a table indexed by host), where ns-3's own search lists or hash maps;
// - no IPv6, no ARP, no global routing, no tracing in the timed run;
// - buffers are small enough that ns-3's per-connection packet lists stay short, and never bind;
// - the application writes in large pieces.
// Frames on the wire have the size that the spec gives (the MTU less ns-3's 2-byte PPP header), so that links take
// exactly as long per packet as they do on our side.

#ifndef FIRSTLIGHT_BENCHES_NS3_PEER_H
#define FIRSTLIGHT_BENCHES_NS3_PEER_H

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <sys/resource.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace peer
{

using namespace ns3;

// ---- addresses and routing ----------------------------------------------------------------------------------

/// Host `h` has 10.x.y.1 in a /30 of its own; its switch port has the other address of that /30.
inline Ipv4Address
HostAddress(uint32_t h)
{
    return Ipv4Address((10U << 24) | ((h + 1) << 2) | 1);
}

inline Ipv4Address
SwitchPortAddress(uint32_t h)
{
    return Ipv4Address((10U << 24) | ((h + 1) << 2) | 2);
}

/// The host that an address of `HostAddress` belongs to.
inline uint32_t
HostOf(Ipv4Address a)
{
    return ((a.Get() >> 2) & 0xffff) - 1;
}

/// Which way to a host: one of so many consecutive interfaces.
struct NextHops
{
    uint32_t first;
    uint32_t count = 1;
};

/// Routing by table: destination host -> outgoing interfaces, among which both addresses decide. An empty table makes
/// a host: all goes out at interface 1.
class TableRouting : public Ipv4RoutingProtocol
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("firstlight::TableRouting").SetParent<Ipv4RoutingProtocol>().AddConstructor<TableRouting>();
        return tid;
    }

    /// Makes this a switch's table.
    void SetTable(std::vector<NextHops> hops, uint32_t salt)
    {
        m_table = std::move(hops);
        m_salt = salt;
    }

    Ptr<Ipv4Route> RouteOutput(Ptr<Packet>, const Ipv4Header& h, Ptr<NetDevice>, Socket::SocketErrno& e) override
    {
        e = Socket::ERROR_NOTERROR;
        return Route(h.GetDestination(), 1, 0);
    }

    bool RouteInput(Ptr<const Packet> p,
                    const Ipv4Header& h,
                    Ptr<const NetDevice> from,
                    UnicastForwardCallback forward,
                    MulticastForwardCallback,
                    LocalDeliverCallback deliver,
                    ErrorCallback) override
    {
        if (m_table.empty())
        {
            deliver(p, h, m_ip->GetInterfaceForDevice(from));
        }
        else
        {
            const NextHops hops = m_table[HostOf(h.GetDestination())];
            const uint32_t choice = hops.count == 1 ? 0 : Choose(h, hops.count);
            forward(Route(h.GetDestination(), hops.first + choice, choice), p, h);
        }
        return true;
    }

    void SetIpv4(Ptr<Ipv4> ip) override
    {
        m_ip = ip;
    }

    void NotifyInterfaceUp(uint32_t) override {}
    void NotifyInterfaceDown(uint32_t) override {}
    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override {}
    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override {}

  private:
    /// The choice of a pair of hosts at this switch (the finalizer of SplitMix64).
    uint32_t Choose(const Ipv4Header& h, uint32_t count) const
    {
        uint64_t z = (static_cast<uint64_t>(h.GetSource().Get()) << 32 | h.GetDestination().Get());
        z += 0x9e3779b97f4a7c15ULL * (m_salt + 1);
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
        return (z ^ z >> 31) % count;
    }

    /// The route to `destination` by interface `i`, which is this choice of several; made once and kept.
    Ptr<Ipv4Route> Route(Ipv4Address destination, uint32_t i, uint32_t choice)
    {
        const uint32_t slot = HostOf(destination) * MOST_CHOICES + choice;
        if (m_routes.size() <= slot)
        {
            m_routes.resize(slot + 1);
        }
        if (!m_routes[slot])
        {
            auto route = Create<Ipv4Route>();
            route->SetDestination(destination);
            route->SetGateway(destination);
            route->SetSource(m_ip->GetAddress(i, 0).GetLocal());
            route->SetOutputDevice(m_ip->GetNetDevice(i));
            m_routes[slot] = route;
        }
        return m_routes[slot];
    }

    static constexpr uint32_t MOST_CHOICES = 4;
    Ptr<Ipv4> m_ip;
    std::vector<NextHops> m_table;
    uint32_t m_salt = 0;
    std::vector<Ptr<Ipv4Route>> m_routes;
};

class TableRoutingHelper : public Ipv4RoutingHelper
{
  public:
    TableRoutingHelper* Copy() const override
    {
        return new TableRoutingHelper(*this);
    }

    Ptr<Ipv4RoutingProtocol> Create(Ptr<Node>) const override
    {
        return CreateObject<TableRouting>();
    }
};

/// Installs IPv4 and TCP with table routing on `nodes`.
inline void
InstallStack(NodeContainer nodes)
{
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(TableRoutingHelper());
    stack.Install(nodes);
}

/// Makes `node` a switch. `salt` makes its choices its own.
inline void
SetTable(Ptr<Node> node, std::vector<NextHops> hops, uint32_t salt = 0)
{
    DynamicCast<TableRouting>(node->GetObject<Ipv4>()->GetRoutingProtocol())->SetTable(std::move(hops), salt);
}

// ---- links --------------------------------------------------------------------------------------------------

/// Puts `device` on `node` with a FIFO of `packets`; `flowControl` lets a queue discipline above it hold packets back.
inline void
AddDevice(Ptr<Node> node,
          Ptr<PointToPointNetDevice> device,
          DataRate rate,
          uint32_t mtu,
          uint32_t packets,
          bool flowControl)
{
    device->SetAddress(Mac48Address::Allocate());
    device->SetDataRate(rate);
    device->SetMtu(mtu);
    auto queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, packets));
    device->SetQueue(queue);
    node->AddDevice(device);
    if (flowControl)
    {
        auto control = CreateObject<NetDeviceQueueInterface>();
        control->GetTxQueue(0)->ConnectQueueTraces(queue);
        device->AggregateObject(control);
    }
}

/// A new device as `AddDevice` makes it.
inline Ptr<PointToPointNetDevice>
NewDevice(Ptr<Node> node, DataRate rate, uint32_t mtu, uint32_t packets, bool flowControl = false)
{
    auto device = CreateObject<PointToPointNetDevice>();
    AddDevice(node, device, rate, mtu, packets, flowControl);
    return device;
}

/// Joins two devices by a link with one-way `delay`.
inline void
Join(Ptr<PointToPointNetDevice> a, Ptr<PointToPointNetDevice> b, Time delay)
{
    auto channel = CreateObject<PointToPointChannel>();
    channel->SetAttribute("Delay", TimeValue(delay));
    a->Attach(channel);
    b->Attach(channel);
}

/// Gives `device` an IP interface with `address`, and returns its index on `node`.
inline uint32_t
AddInterface(Ptr<Node> node, Ptr<NetDevice> device, Ipv4Address address)
{
    auto ip = node->GetObject<Ipv4>();
    const uint32_t i = ip->AddInterface(device);
    ip->AddAddress(i, Ipv4InterfaceAddress(address, Ipv4Mask("255.255.255.252")));
    ip->SetUp(i);
    return i;
}

// ---- TCP ----------------------------------------------------------------------------------------------------

/// Settings that both sides of the benchmark have under names of their own; the spec files beside this folder match.
struct TcpSettings
{
    TypeId cc;               ///< Congestion control.
    uint32_t segment;        ///< Payload bytes of a full packet.
    uint32_t buffer;         ///< Send and receive buffer, and so the receive window, in bytes.
    Time minRto;             ///< Least retransmission timeout.
    Time delayedAckTimeout;  ///< An acknowledgement waits at most this long for a second packet.
};

inline void
SetTcp(const TcpSettings& s)
{
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(s.cc));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(s.segment));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(s.buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(s.buffer));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(s.delayedAckTimeout));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(s.minRto));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
}

/// A bulk flow from `from` to a sink at host `to` (whose node is `toNode`), from `start` until `bytes` are sent, or
/// to the end of the run where that is 0.
inline Ptr<PacketSink>
AddBulkFlow(Ptr<Node> from,
            Ptr<Node> toNode,
            uint32_t to,
            uint16_t port,
            Time start,
            uint32_t segment,
            uint64_t bytes = 0)
{
    PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
    auto sinks = sink.Install(toNode);
    sinks.Start(Seconds(0));
    BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(HostAddress(to), port));
    bulk.SetAttribute("MaxBytes", UintegerValue(bytes));
    bulk.SetAttribute("SendSize", UintegerValue(segment * 8));
    bulk.Install(from).Start(start);
    return DynamicCast<PacketSink>(sinks.Get(0));
}

// ---- counting and the report --------------------------------------------------------------------------------

/// Packet-hops: one for each transmission that a device begins, whatever becomes of the packet at the far end.
struct Hops
{
    uint64_t data = 0; ///< Frames longer than 200 bytes.
    uint64_t ack = 0;  ///< All others: acknowledgements and handshakes.

    void OnTransmit(Ptr<const Packet> p)
    {
        ++(p->GetSize() > 200 ? data : ack);
    }

    /// Listens to every device of every node. Only for a counting run: it makes the run slower.
    void Watch()
    {
        for (auto node = NodeList::Begin(); node != NodeList::End(); ++node)
        {
            for (uint32_t i = 0; i < (*node)->GetNDevices(); ++i)
            {
                (*node)->GetDevice(i)->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Hops::OnTransmit, this));
            }
        }
    }
};

inline double
Seconds(const timeval& t)
{
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
}

/// The most memory that this program has had at once, in MB (ru_maxrss would begin with what its parent had).
inline double
PeakMemoryMb()
{
    std::ifstream status("/proc/self/status");
    std::string word;
    double kb = 0;
    while (status >> word && word != "VmHWM:")
    {
    }
    status >> kb;
    NS_ABORT_MSG_UNLESS(status, "/proc/self/status has no VmHWM: it is read on Linux");
    return kb / 1024.0;
}

/// Runs the simulation to `until` and prints one line of JSON. Set-up is not in the CPU time. Hops are 0 unless
/// `count`.
inline void
RunAndReport(Time until, bool count, const std::vector<Ptr<PacketSink>>& sinks, uint32_t segment)
{
    Hops hops;
    if (count)
    {
        hops.Watch();
    }
    rusage before{};
    rusage after{};
    Simulator::Stop(until);
    getrusage(RUSAGE_SELF, &before);
    Simulator::Run();
    getrusage(RUSAGE_SELF, &after);

    uint64_t bytes = 0;
    for (const auto& sink : sinks)
    {
        bytes += sink->GetTotalRx();
    }
    std::printf("{\"packet_hops\": %llu, \"data_hops\": %llu, \"ack_hops\": %llu, \"delivered_data_packets\": %llu, "
                "\"user_cpu_s\": %.6f, \"system_cpu_s\": %.6f, \"max_rss_mb\": %.1f, \"simulated_s\": %.6f, "
                "\"events\": %llu}\n",
                static_cast<unsigned long long>(hops.data + hops.ack),
                static_cast<unsigned long long>(hops.data),
                static_cast<unsigned long long>(hops.ack),
                static_cast<unsigned long long>(bytes / segment),
                Seconds(after.ru_utime) - Seconds(before.ru_utime),
                Seconds(after.ru_stime) - Seconds(before.ru_stime),
                PeakMemoryMb(),
                Simulator::Now().GetSeconds(),
                static_cast<unsigned long long>(Simulator::GetEventCount()));
    Simulator::Destroy();
}

} // namespace peer

#endif
