// A switch port's queue in the ns-3 programs of the benchmark.

#ifndef FIRSTLIGHT_BENCHES_NS3_MARKING_FIFO_H
#define FIRSTLIGHT_BENCHES_NS3_MARKING_FIFO_H

#include "peer.h"

namespace peer
{

/// FIFO with threshold marking: what a RED queue with equal thresholds and no averaging does, without RED's arithmetic.
class MarkingFifo : public QueueDisc
{
  public:
    MarkingFifo(uint32_t limit, uint32_t threshold)
        : QueueDisc(QueueDiscSizePolicy::SINGLE_INTERNAL_QUEUE),
          m_limit(limit),
          m_threshold(threshold)
    {
    }

  private:
    bool DoEnqueue(Ptr<QueueDiscItem> item) override
    {
        // The device below holds one packet besides the one on the wire: both sides count the waiting ones.
        const uint32_t waiting = GetInternalQueue(0)->GetNPackets() + 1;
        if (waiting >= m_limit)
        {
            DropBeforeEnqueue(item, "full");
            return false;
        }
        if (waiting + 1 > m_threshold)
        {
            Mark(item, "above threshold");
        }
        return GetInternalQueue(0)->Enqueue(item);
    }

    Ptr<QueueDiscItem> DoDequeue() override
    {
        return GetInternalQueue(0)->Dequeue();
    }

    bool CheckConfig() override
    {
        AddInternalQueue(
            CreateObjectWithAttributes<DropTailQueue<QueueDiscItem>>(
                "MaxSize",
                QueueSizeValue({QueueSizeUnit::PACKETS, m_limit})));
        return true;
    }

    void InitializeParams() override {}

    uint32_t m_limit;
    uint32_t m_threshold;
};

} // namespace peer

#endif
