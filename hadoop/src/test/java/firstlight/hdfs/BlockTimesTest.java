// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import static org.junit.Assert.assertEquals;

import java.util.Optional;
import org.junit.Test;

/** What is read of a DataNode's trace. */
public class BlockTimesTest {
    private static final String WRITE = "src: /10.0.0.2:43334, dest: /10.0.0.%d:9866, volume: a.b.SimulatedVolume@2e8f,"
            + " bytes: 8388608, op: %s, cliID: DFSClient_NONMAPREDUCE_-140_12, offset: 0, srvID: d16830db-c461,"
            + " blockid: BP-493469256-10.0.0.1-1700000002003:blk_1073741828_1004, duration(ns): 8532447";

    @Test
    public void a_write_from_the_nodes_own_host_is_a_row() {
        Optional<String> row = BlockTimes.row(String.format(WRITE, 2, "HDFS_WRITE"), 10_000_000_000L);
        assertEquals(Optional.of("blk_1073741828_1004,9991467.553,8532.447,8388608"), row);
    }

    @Test
    public void writes_from_other_hosts_and_reads_are_none() {
        assertEquals(Optional.empty(), BlockTimes.row(String.format(WRITE, 3, "HDFS_WRITE"), 0));
        assertEquals(Optional.empty(), BlockTimes.row(String.format(WRITE, 2, "HDFS_READ"), 0));
        assertEquals(Optional.empty(), BlockTimes.row("anything else", 0));
    }
}
