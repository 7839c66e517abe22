// Etalon's Fig. 3 in ns-3 (../../../experiments/etalon/fig03): flows over one link whose rate and delay alternate.
//
// Two hosts with links of 100 Gb/s; between their ToRs a link that has 80 Gb/s and 30 us for a phase and 10 Gb/s and 5
// us for the next, with a FIFO of some packets of 1500 B. TCP is ns-3's NewReno with its own defaults: timeouts of at
// least 1 s, an ACK for every other packet, SACK. Prints completion time, timeouts, fast recoveries and drops.
//
// Build and run, from the top of the checkout (needs libns3-dev); other options: phases --help:
//
//     make -C benches/peers/ns3
//     target/peers/ns3/phases --flows=1 --queue=48 --phase=64 --gigabytes=0.4
//
// This point takes 9 s of processor time. Its queue is 8 packets of 9000 B, as in the experiment.

#include "peer.h"

using namespace ns3;

namespace
{

/// A link on which no packet overtakes another when the delay falls, unless it is told to let them.
class AlternatingChannel : public PointToPointChannel
{
  public:
    bool TransmitStart(Ptr<const Packet> p, Ptr<PointToPointNetDevice> from, Time transmission) override
    {
        const uint32_t wire = from == GetPointToPointDevice(0) ? 0 : 1;
        auto to = GetPointToPointDevice(1 - wire);
        Time arrival = Simulator::Now() + transmission + delay;
        if (!overtaking)
        {
            arrival = std::max(arrival, m_last[wire]);
        }
        m_last[wire] = arrival;
        Simulator::ScheduleWithContext(to->GetNode()->GetId(),
                                       arrival - Simulator::Now(),
                                       &PointToPointNetDevice::Receive,
                                       to,
                                       p->Copy());
        return true;
    }

    Time delay;
    bool overtaking = false;

  private:
    Time m_last[2];
};

/// Counts what happens to the flows.
struct Counts
{
    uint64_t drops = 0;
    uint64_t timeouts = 0;
    uint64_t recoveries = 0;

    void OnDrop(Ptr<const Packet>)
    {
        ++drops;
    }

    void OnState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state)
    {
        timeouts += state == TcpSocketState::CA_LOSS;
        recoveries += state == TcpSocketState::CA_RECOVERY;
    }

    /// Listens to the sockets of the first node.
    void Watch()
    {
        Config::ConnectWithoutContext("/NodeList/0/$ns3::TcpL4Protocol/SocketList/*/CongState",
                                      MakeCallback(&Counts::OnState, this));
    }
};

/// The alternating link.
struct Link
{
    Ptr<PointToPointNetDevice> ends[2];
    Ptr<AlternatingChannel> channel;
    Time phase;

    void Begin(bool circuit)
    {
        for (auto& end : ends)
        {
            end->SetDataRate(DataRate(circuit ? "80Gbps" : "10Gbps"));
        }
        channel->delay = MicroSeconds(circuit ? 30 : 5);
        Simulator::Schedule(phase, &Link::Begin, this, !circuit);
    }
};

/// Ends the run when all flows are complete.
struct End
{
    std::vector<Ptr<PacketSink>> sinks;
    uint64_t bytes = 0;

    uint64_t Received() const
    {
        uint64_t received = 0;
        for (const auto& sink : sinks)
        {
            received += sink->GetTotalRx();
        }
        return received;
    }

    void Look()
    {
        if (Received() >= bytes)
        {
            Simulator::Stop();
            return;
        }
        Simulator::Schedule(MilliSeconds(1), &End::Look, this);
    }
};

} // namespace

int
main(int argc, char** argv)
{
    uint32_t flows = 10;
    uint32_t queue = 48;
    uint32_t phase = 64;
    double gigabytes = 25;
    double until = 60;
    bool sack = true;
    bool overtaking = false;
    std::string recovery = "ns3::TcpPrrRecovery";
    CommandLine options;
    options.AddValue("flows", "how many share the bytes", flows);
    options.AddValue("queue", "packets of 1500 B", queue);
    options.AddValue("phase", "microseconds", phase);
    options.AddValue("gigabytes", "bytes of all flows together", gigabytes);
    options.AddValue("until", "seconds after which a run ends", until);
    options.AddValue("sack", "selective acknowledgements", sack);
    options.AddValue("overtaking", "packets overtake others when the delay falls", overtaking);
    options.AddValue("recovery", "ns3::TcpPrrRecovery or ns3::TcpClassicRecovery", recovery);
    options.Parse(argc, argv);

    const uint32_t mtu = 1500 - 2; // and 2 bytes of PPP
    const uint32_t segment = mtu - 52;
    const DataRate hostRate("100Gbps");
    peer::SetTcp({TcpNewReno::GetTypeId(), segment, 4 << 20, Seconds(1), MilliSeconds(200)});
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(1)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(sack));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TypeId::LookupByName(recovery)));

    NodeContainer hosts(2);
    NodeContainer tors(2);
    peer::InstallStack(hosts);
    peer::InstallStack(tors);
    Link link{{}, CreateObject<AlternatingChannel>(), MicroSeconds(phase)};
    link.channel->overtaking = overtaking;
    for (uint32_t r = 0; r < 2; ++r)
    {
        link.ends[r] = peer::NewDevice(tors.Get(r), DataRate("80Gbps"), mtu, queue);
        const uint32_t away = peer::AddInterface(tors.Get(r), link.ends[r], Ipv4Address((12U << 24) | (r + 1)));
        auto nic = peer::NewDevice(hosts.Get(r), hostRate, mtu, 100000);
        auto port = peer::NewDevice(tors.Get(r), hostRate, mtu, 100000);
        peer::Join(nic, port, Time(0));
        peer::AddInterface(hosts.Get(r), nic, peer::HostAddress(r));
        std::vector<peer::NextHops> table(2, {away});
        table[r] = {peer::AddInterface(tors.Get(r), port, peer::SwitchPortAddress(r))};
        peer::SetTable(tors.Get(r), table);
        link.ends[r]->Attach(link.channel);
    }
    Simulator::ScheduleNow(&Link::Begin, &link, true);

    Counts counts;
    link.ends[0]->GetQueue()->TraceConnectWithoutContext("Drop", MakeCallback(&Counts::OnDrop, &counts));
    Simulator::Schedule(NanoSeconds(1), &Counts::Watch, &counts);
    End end;
    const auto each = static_cast<uint64_t>(gigabytes * 1e9 / flows);
    end.bytes = each * flows;
    for (uint32_t f = 0; f < flows; ++f)
    {
        end.sinks.push_back(peer::AddBulkFlow(hosts.Get(0), hosts.Get(1), 1, 5000 + f, Time(0), segment, each));
    }
    Simulator::ScheduleNow(&End::Look, &end);
    Simulator::Stop(Seconds(until));
    Simulator::Run();
    std::printf("{\"flows\": %u, \"queue\": %u, \"phase_us\": %u, \"seconds\": %.3f, \"gigabytes\": %.3f, "
                "\"timeouts\": %llu, \"recoveries\": %llu, \"drops\": %llu}\n",
                flows,
                queue,
                phase,
                Simulator::Now().GetSeconds(),
                static_cast<double>(end.Received()) / 1e9,
                static_cast<unsigned long long>(counts.timeouts),
                static_cast<unsigned long long>(counts.recoveries),
                static_cast<unsigned long long>(counts.drops));
    Simulator::Destroy();
    return 0;
}
