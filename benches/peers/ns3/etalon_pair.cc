// The Etalon pair of the benchmark in ns-3: 16 CUBIC flows over a pair of racks, as ../../etalon-pair.toml.
//
// Two racks of 16 hosts on 40 Gb/s links. Between their ToRs a packet network (two serializations of 10 Gb/s, 5 us
// each) and a circuit (80 Gb/s, 30 us) that share one VOQ of 16 packets for each direction. A week has 24 days of
// 180 us, each after a night of 20 us; the forward pair has the circuit on the last day, the reverse pair on the others
// (the stand-in for 25 racks on 3). The packet path is off in the night before a pair's day and during that day.
//
// Where it differs from our side:
// - the switch between the racks queues where ours keeps packets in the VOQ by credits: with one input per downlink
//   and equal rates no queue forms there, so nothing differs on the wire;
// - the third, idle rack is left out;
// - ns-3's TCP has neither RACK-TLP nor quick acknowledgements at the start: after the first burst, of which the VOQ
//   drops most, more of its flows wait out timeouts, and it makes some percent fewer packet-hops.

#include "peer.h"

#include <deque>

using namespace ns3;

namespace
{

constexpr uint32_t HOSTS = 16; // per rack
constexpr uint32_t VOQ_PACKETS = 16;
constexpr int DAYS = 24;

/// CUBIC with the Reno-friendly region of RFC 9438 (section 4.3), which ns-3 3.37 leaves out. Without it, windows of a
/// few packets hardly grow between losses: ns-3 then has a seventh of our losses, and with them fewer retransmissions
/// and acknowledgements, that is, less of the work that is compared here.
class FriendlyCubic : public TcpCubic
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("firstlight::FriendlyCubic").SetParent<TcpCubic>().AddConstructor<FriendlyCubic>();
        return tid;
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t acked) override
    {
        const bool avoiding = state->m_cWnd >= state->m_ssThresh;
        TcpCubic::IncreaseWindow(state, acked);
        if (avoiding)
        {
            const double window = static_cast<double>(state->GetCwndInSegments());
            m_estimate = std::max(m_estimate, static_cast<double>(state->m_ssThresh) / state->m_segmentSize);
            m_estimate += ALPHA * acked / window;
            if (std::floor(m_estimate) > window)
            {
                state->m_cWnd = static_cast<uint32_t>(m_estimate) * state->m_segmentSize;
            }
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        m_estimate = 0; // starts anew from the threshold
        return TcpCubic::GetSsThresh(state, inFlight);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<FriendlyCubic>(this);
    }

  private:
    static constexpr double ALPHA = 3 * (1 - 0.7) / (1 + 0.7);
    double m_estimate = 0;
};

class Voq;

/// The queue of a device that serves a VOQ. It takes the VOQ's head when the device becomes free and the path is open.
class PathQueue : public DropTailQueue<Packet>
{
  public:
    void Serve(Voq* voq, Ptr<PointToPointNetDevice> device, DataRate rate)
    {
        m_voq = voq;
        m_device = device;
        m_rate = rate;
    }

    /// Lets packets start from now on, as long as they are through by `until`.
    void Open(Time until)
    {
        m_open = true;
        m_until = until;
        Kick();
    }

    void Close()
    {
        m_open = false;
    }

    /// Starts the VOQ's head if the device is free.
    void Kick();

    /// Called by the device: `Send` puts the packet that it is about to start here.
    bool Enqueue(Ptr<Packet> p) override
    {
        m_next = p;
        return true;
    }

    /// Called by the device when it is free: by `Send` at once, and whenever a transmission ends.
    Ptr<Packet> Dequeue() override;

  private:
    bool MayStart() const;

    Voq* m_voq = nullptr;
    Ptr<PointToPointNetDevice> m_device;
    DataRate m_rate;
    Ptr<Packet> m_next;
    Time m_until;
    bool m_open = false;
    bool m_idle = true;
};

/// A ToR's queue for the other rack: tail drop, counted in packets, served by two paths of which at most one is open.
class Voq
{
  public:
    void Arrive(Ptr<Packet> p)
    {
        if (m_packets.size() < VOQ_PACKETS)
        {
            m_packets.push_back(p);
            packet->Kick();
            circuit->Kick();
        }
    }

    Ptr<const Packet> Head() const
    {
        return m_packets.empty() ? nullptr : m_packets.front();
    }

    Ptr<Packet> Take()
    {
        auto p = m_packets.front();
        m_packets.pop_front();
        return p;
    }

    Ptr<PathQueue> packet;
    Ptr<PathQueue> circuit;

  private:
    std::deque<Ptr<Packet>> m_packets;
};

constexpr uint32_t PPP_BYTES = 2;
constexpr uint16_t IPV4 = 0x0800;

bool
PathQueue::MayStart() const
{
    auto head = m_open ? m_voq->Head() : nullptr;
    return head && Simulator::Now() + m_rate.CalculateBytesTxTime(head->GetSize() + PPP_BYTES) <= m_until;
}

void
PathQueue::Kick()
{
    if (m_idle && MayStart())
    {
        m_idle = false;
        m_device->PointToPointNetDevice::Send(m_voq->Take(), m_device->GetBroadcast(), IPV4);
    }
}

Ptr<Packet>
PathQueue::Dequeue()
{
    if (m_next)
    {
        return std::exchange(m_next, nullptr);
    }
    m_idle = !MayStart();
    if (m_idle)
    {
        return nullptr;
    }
    auto p = m_voq->Take();
    PppHeader ppp;
    ppp.SetProtocol(0x0021);
    p->AddHeader(ppp);
    return p;
}

/// The device that the ToR's IP layer sends to: it hands everything to the VOQ.
class VoqDevice : public PointToPointNetDevice
{
  public:
    bool Send(Ptr<Packet> p, const Address&, uint16_t) override
    {
        voq->Arrive(p);
        return true;
    }

    Voq* voq = nullptr;
};

/// Opens and closes one direction's paths, day after day. `ownDays` says on which days it has the circuit.
class Calendar
{
  public:
    Calendar(Voq* voq, bool (*ownDay)(int))
        : m_voq(voq),
          m_ownDay(ownDay)
    {
        Simulator::ScheduleNow(&Calendar::BeginNight, this, 0);
    }

  private:
    void BeginNight(int day)
    {
        if (m_ownDay(day))
        {
            m_voq->packet->Close();
            Simulator::Schedule(NIGHT, &Calendar::BeginDay, this);
        }
        else if (day == 0 && Simulator::Now().IsZero())
        {
            m_voq->packet->Open(Time::Max());
        }
        Simulator::Schedule(NIGHT + DAY, &Calendar::EndDay, this, day);
    }

    void BeginDay()
    {
        m_voq->circuit->Open(Simulator::Now() + DAY);
    }

    void EndDay(int day)
    {
        const int next = (day + 1) % DAYS;
        if (m_ownDay(day))
        {
            m_voq->circuit->Close();
            if (!m_ownDay(next))
            {
                m_voq->packet->Open(Time::Max());
            }
        }
        BeginNight(next);
    }

    const Time NIGHT = MicroSeconds(20);
    const Time DAY = MicroSeconds(180);
    Voq* m_voq;
    bool (*m_ownDay)(int);
};

/// A rack's ToR: its VOQ with a device for each path.
struct Tor
{
    Voq voq;
    Ptr<VoqDevice> packet;
    Ptr<PointToPointNetDevice> circuit;
};

/// Makes `device` serve `voq`, and returns the queue that does it.
Ptr<PathQueue>
Serve(Voq* voq, Ptr<PointToPointNetDevice> device, DataRate rate)
{
    auto queue = CreateObject<PathQueue>();
    queue->Serve(voq, device, rate);
    device->SetQueue(queue);
    return queue;
}

} // namespace

int
main(int argc, char** argv)
{
    double duration = 1;
    bool count = false;
    CommandLine options;
    options.AddValue("duration", "simulated seconds", duration);
    options.AddValue("count", "count packet-hops (slower)", count);
    options.Parse(argc, argv);

    const uint32_t mtu = 9000 - PPP_BYTES;
    const uint32_t segment = mtu - 52;
    const DataRate hostRate("40Gbps");
    const DataRate packetRate("10Gbps");
    const DataRate circuitRate("80Gbps");
    const Time packetDelay = MicroSeconds(5);
    peer::SetTcp({FriendlyCubic::GetTypeId(), segment, 1 << 20, MilliSeconds(200), MilliSeconds(40)});

    NodeContainer hosts(2 * HOSTS);
    NodeContainer tors(2);
    NodeContainer core(1);
    peer::InstallStack(hosts);
    peer::InstallStack(tors);
    peer::InstallStack(core);

    Tor tor[2];
    std::vector<peer::NextHops> coreTable(2 * HOSTS);
    for (uint32_t r = 0; r < 2; ++r)
    {
        auto& t = tor[r];
        t.packet = CreateObject<VoqDevice>();
        t.packet->voq = &t.voq;
        peer::AddDevice(tors.Get(r), t.packet, packetRate, mtu, 1, false);
        t.voq.packet = Serve(&t.voq, t.packet, packetRate);
        t.circuit = peer::NewDevice(tors.Get(r), circuitRate, mtu, 1);
        t.voq.circuit = Serve(&t.voq, t.circuit, circuitRate);
        auto down = peer::NewDevice(core.Get(0), packetRate, mtu, 1000);
        peer::Join(t.packet, down, packetDelay);

        const uint32_t network = (12U << 24) | (r << 8);
        const uint32_t toVoq = peer::AddInterface(tors.Get(r), t.packet, Ipv4Address(network | 1));
        const uint32_t toRack = peer::AddInterface(core.Get(0), down, Ipv4Address(network | 2));
        peer::AddInterface(tors.Get(r), t.circuit, Ipv4Address(network | 5));
        std::vector<peer::NextHops> table(2 * HOSTS, {toVoq});
        for (uint32_t h = r * HOSTS; h < (r + 1) * HOSTS; ++h)
        {
            auto nic = peer::NewDevice(hosts.Get(h), hostRate, mtu, 100000);
            auto port = peer::NewDevice(tors.Get(r), hostRate, mtu, 100000);
            peer::Join(nic, port, Time(0));
            peer::AddInterface(hosts.Get(h), nic, peer::HostAddress(h));
            table[h] = {peer::AddInterface(tors.Get(r), port, peer::SwitchPortAddress(h))};
            coreTable[h] = {toRack};
        }
        peer::SetTable(tors.Get(r), table);
    }
    peer::SetTable(core.Get(0), coreTable);
    peer::Join(tor[0].circuit, tor[1].circuit, MicroSeconds(30));
    Calendar forward(&tor[0].voq, [](int day) { return day == DAYS - 1; });
    Calendar reverse(&tor[1].voq, [](int day) { return day != DAYS - 1; });

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t h = 0; h < HOSTS; ++h)
    {
        sinks.push_back(peer::AddBulkFlow(hosts.Get(h), hosts.Get(HOSTS + h), HOSTS + h, 5000, Seconds(0), segment));
    }
    peer::RunAndReport(Seconds(duration), count, sinks, segment);
    return 0;
}
