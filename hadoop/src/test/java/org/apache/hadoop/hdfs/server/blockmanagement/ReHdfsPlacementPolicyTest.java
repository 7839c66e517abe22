// SPDX-License-Identifier: MIT OR Apache-2.0
package org.apache.hadoop.hdfs.server.blockmanagement;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertFalse;
import static org.junit.Assert.assertThrows;
import static org.junit.Assert.assertTrue;

import firstlight.hdfs.ReHdfsPlacementPolicy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.test.GenericTestUtils.LogCapturer;
import org.apache.hadoop.util.FakeTimer;
import org.junit.After;
import org.junit.Before;
import org.junit.Test;
import org.slf4j.LoggerFactory;

/**
 * Where the policy puts replicas in a NameNode with four racks of three nodes; it is in this package because Hadoop's
 * own base of such tests can only be extended there.
 */
public class ReHdfsPlacementPolicyTest extends BaseReplicationPolicyTest {
    private static final int RACKS = 4;
    private static final int PER_RACK = 3;

    private LogCapturer log;

    public ReHdfsPlacementPolicyTest() {
        blockPlacementPolicy = ReHdfsPlacementPolicy.class.getName();
    }

    @Override
    DatanodeDescriptor[] getDatanodeDescriptors(Configuration conf) {
        conf.set(ReHdfsPlacementPolicy.ROTATION_KEY, "0");
        String[] racks = IntStream.range(0, RACKS * PER_RACK)
                .mapToObj(i -> "/rack" + i / PER_RACK)
                .toArray(String[]::new);
        storages = DFSTestUtil.createDatanodeStorageInfos(racks);
        return DFSTestUtil.toDatanodeDescriptor(storages);
    }

    @Before
    public void capture() {
        log = LogCapturer.captureLogs(LoggerFactory.getLogger(ReHdfsPlacementPolicy.class));
    }

    @After
    public void release() {
        log.stopCapturing();
    }

    @Test
    public void all_but_the_first_replica_are_in_the_next_rack() {
        for (int writer = 0; writer < dataNodes.length; writer++) {
            DatanodeStorageInfo[] chosen = chooseTarget(3, dataNodes[writer]);
            String next = "/rack" + (writer / PER_RACK + 1) % RACKS;
            assertEquals(dataNodes[writer], chosen[0].getDatanodeDescriptor());
            assertEquals(Arrays.asList(next, next), racks(chosen).subList(1, 3));
            assertDistinct(chosen);
        }
        assertEquals("", log.getOutput());
    }

    /** What makes the difference: the default policy draws the rack anew for each block. */
    @Test
    public void the_default_policy_has_no_rack_of_its_own_for_a_writer() {
        replicator = new BlockPlacementPolicyDefault();
        initialize(replicator, new Configuration());
        Set<String> others = new TreeSet<>();
        for (int block = 0; block < 100; block++) {
            others.add(racks(chooseTarget(3, dataNodes[0])).get(1));
        }
        assertEquals(new TreeSet<>(Arrays.asList("/rack1", "/rack2", "/rack3")), others);
    }

    @Test
    public void nodes_of_the_other_rack_are_drawn_at_random() {
        Set<DatanodeDescriptor> seen = new HashSet<>();
        for (int block = 0; block < 100; block++) {
            seen.add(chooseTarget(2, dataNodes[0])[1].getDatanodeDescriptor());
        }
        assertEquals(new HashSet<>(rack(1)), seen);
    }

    @Test
    public void the_other_rack_may_have_as_many_replicas_as_it_has_nodes() {
        DatanodeStorageInfo[] chosen = chooseTarget(4, dataNodes[0]);
        assertEquals(Arrays.asList("/rack1", "/rack1", "/rack1"), racks(chosen).subList(1, 4));
        assertDistinct(chosen);
    }

    @Test
    public void the_default_policy_places_what_the_other_rack_has_no_node_for() {
        DatanodeStorageInfo[] chosen = chooseTarget(6, dataNodes[0]);
        assertEquals(6, chosen.length);
        assertEquals(3, Collections.frequency(racks(chosen), "/rack1"));
        assertDistinct(chosen);
        assertLogged("Blocks written in rack /rack0 are placed by Hadoop's default policy:"
                + " rack /rack1 has no node for 2 of its replicas");
    }

    @Test
    public void one_replica_is_the_default_policys() {
        DatanodeStorageInfo[] chosen = chooseTarget(1, dataNodes[4]);
        assertEquals(Collections.singletonList("/rack1"), racks(chosen));
        assertEquals("", log.getOutput());
    }

    @Test
    public void for_a_writer_outside_the_cluster_the_first_replica_decides() {
        for (int block = 0; block < 20; block++) {
            List<String> racks = racks(chooseTarget(3, (DatanodeDescriptor) null));
            Collections.sort(racks);
            assertEquals(2, new TreeSet<>(racks).size());
            boolean firstIsAlone = Collections.frequency(racks, racks.get(0)) == 1;
            String home = racks.get(firstIsAlone ? 0 : 2);
            String other = racks.get(firstIsAlone ? 2 : 0);
            int number = Integer.parseInt(home.substring("/rack".length()));
            assertEquals("/rack" + (number + 1) % RACKS, other);
        }
    }

    @Test
    public void excluded_nodes_get_none() {
        Set<Node> excluded = new HashSet<>(Arrays.asList(dataNodes[3], dataNodes[4]));
        DatanodeStorageInfo[] chosen = chooseTarget(2, dataNodes[0], new ArrayList<>(), excluded);
        assertEquals(dataNodes[5], chosen[1].getDatanodeDescriptor());
        assertEquals("", log.getOutput());
    }

    @Test
    public void a_rack_of_excluded_nodes_is_replaced_by_the_default_policy() {
        Set<Node> excluded = new HashSet<>(rack(1));
        assertPlacedOutside("/rack1", chooseTarget(3, dataNodes[0], new ArrayList<>(), excluded));
    }

    @Test
    public void decommissioned_nodes_get_none() {
        dataNodes[3].startDecommission();
        dataNodes[4].startDecommission();
        dataNodes[4].setDecommissioned();
        for (int block = 0; block < 20; block++) {
            assertEquals(dataNodes[5], chooseTarget(2, dataNodes[0])[1].getDatanodeDescriptor());
        }
        assertEquals("", log.getOutput());
    }

    @Test
    public void a_rack_of_decommissioned_nodes_is_replaced_by_the_default_policy() {
        rack(1).forEach(DatanodeDescriptor::setDecommissioned);
        assertPlacedOutside("/rack1", chooseTarget(3, dataNodes[0]));
    }

    @Test
    public void full_nodes_get_none() {
        fill(dataNodes[3]);
        fill(dataNodes[5]);
        for (int block = 0; block < 20; block++) {
            assertEquals(dataNodes[4], chooseTarget(2, dataNodes[0])[1].getDatanodeDescriptor());
        }
        assertEquals("", log.getOutput());
    }

    @Test
    public void a_rack_of_full_nodes_is_replaced_by_the_default_policy_until_it_has_room_again() {
        rack(1).forEach(this::fill);
        for (int block = 0; block < 5; block++) {
            assertPlacedOutside("/rack1", chooseTarget(3, dataNodes[0]));
        }
        assertEquals("the log has one line, not one for each block", 1, log.getOutput().split("\n").length);
        log.clearOutput();
        updateHeartbeatWithUsage();
        assertEquals(Arrays.asList("/rack1", "/rack1"), racks(chooseTarget(3, dataNodes[0])).subList(1, 3));
        chooseTarget(3, dataNodes[0]);
        assertLogged("Blocks written in rack /rack0 have their other replicas in one rack again");
        assertEquals(1, log.getOutput().split("\n").length);
    }

    @Test
    public void a_full_writer_has_its_first_replica_elsewhere_and_the_others_beside_each_other() {
        fill(dataNodes[0]);
        List<String> racks = racks(chooseTarget(3, dataNodes[0]));
        assertEquals(Arrays.asList("/rack0", "/rack1", "/rack1"), racks);
    }

    @Test
    public void a_lost_replica_is_replaced_in_the_rack_of_the_others() {
        assertEquals("/rack3", replaced(storages[0], storages[9]));
        assertEquals("/rack1", replaced(storages[0]));
    }

    @Test
    public void after_the_writers_replica_is_lost_another_rack_gets_one() {
        assertEquals("/rack2", replaced(storages[3], storages[4]));
    }

    @Test
    public void a_cluster_of_one_rack_is_the_default_policys() {
        for (int node = PER_RACK; node < dataNodes.length; node++) {
            cluster.remove(dataNodes[node]);
        }
        DatanodeStorageInfo[] chosen = chooseTarget(3, dataNodes[0]);
        assertEquals(Arrays.asList("/rack0", "/rack0", "/rack0"), racks(chosen));
        assertDistinct(chosen);
        assertLogged("Blocks written in rack /rack0 are placed by Hadoop's default policy:"
                + " the cluster has no other rack");
    }

    @Test
    public void racks_that_come_and_go_change_partners() {
        assertEquals("/rack0", racks(chooseTarget(2, dataNodes[9])).get(1));
        rack(0).forEach(cluster::remove);
        assertEquals("/rack1", racks(chooseTarget(2, dataNodes[9])).get(1));
        rack(0).forEach(cluster::add);
        assertEquals("/rack0", racks(chooseTarget(2, dataNodes[9])).get(1));
    }

    /** As many racks as before, and others. */
    @Test
    public void a_rack_in_place_of_another_changes_partners() {
        assertEquals("/rack2", racks(chooseTarget(2, dataNodes[3])).get(1));
        for (DatanodeDescriptor node : rack(2)) {
            cluster.remove(node);
            node.setNetworkLocation("/rack9");
            cluster.add(node);
        }
        assertEquals("/rack3", racks(chooseTarget(2, dataNodes[3])).get(1));
        assertEquals("/rack9", racks(chooseTarget(2, dataNodes[9])).get(1));
    }

    @Test
    public void the_partner_changes_after_each_period() {
        FakeTimer timer = new FakeTimer(0);
        Configuration conf = new Configuration();
        conf.set(ReHdfsPlacementPolicy.ROTATION_KEY, "2s");
        replicator = new ReHdfsPlacementPolicy(timer) {};
        initialize(replicator, conf);
        List<String> partners = new ArrayList<>();
        for (int second = 0; second < 8; second++) {
            partners.add(racks(chooseTarget(3, dataNodes[6])).get(1));
            timer.advance(1000);
        }
        List<String> expected =
                Arrays.asList("/rack3", "/rack3", "/rack0", "/rack0", "/rack1", "/rack1", "/rack3", "/rack3");
        assertEquals(expected, partners);
    }

    @Test
    public void the_shift_says_which_rack_is_the_partner() {
        Configuration conf = new Configuration();
        conf.set(ReHdfsPlacementPolicy.ROTATION_KEY, "0");
        conf.set(ReHdfsPlacementPolicy.SHIFT_KEY, "3");
        replicator = new ReHdfsPlacementPolicy();
        initialize(replicator, conf);
        assertEquals(Arrays.asList("/rack0", "/rack3", "/rack3"), racks(chooseTarget(3, dataNodes[0])));
    }

    @Test
    public void wrong_settings_are_refused_by_name() {
        assertRefused(ReHdfsPlacementPolicy.SHIFT_KEY, "0", "write a whole number from 1");
        assertRefused(ReHdfsPlacementPolicy.ROTATION_KEY, "-1s", "write a time such as 1s, or 0 for never");
    }

    private static void assertRefused(String key, String value, String remedy) {
        Configuration conf = new Configuration();
        conf.set(key, value);
        IllegalArgumentException refusal =
                assertThrows(IllegalArgumentException.class, () -> new ReHdfsPlacementPolicy().setConf(conf));
        assertEquals(key + " = " + value + ": " + remedy, refusal.getMessage());
    }

    private void initialize(BlockPlacementPolicy policy, Configuration conf) {
        if (policy instanceof Configurable) {
            ((Configurable) policy).setConf(conf);
        }
        policy.initialize(conf, dnManager.getFSClusterStats(), cluster, dnManager.getHost2DatanodeMap());
    }

    private List<DatanodeDescriptor> rack(int rack) {
        return Arrays.asList(dataNodes).subList(rack * PER_RACK, (rack + 1) * PER_RACK);
    }

    private void fill(DatanodeDescriptor node) {
        updateHeartbeatWithUsage(node, 10 * BLOCK_SIZE, 10 * BLOCK_SIZE, 0, 0, 0, 0, 0, 0);
    }

    /** The rack that a third replica goes to when these are there. */
    private String replaced(DatanodeStorageInfo... present) {
        List<DatanodeStorageInfo> there = new ArrayList<>(Arrays.asList(present));
        DatanodeStorageInfo[] chosen = chooseTarget(1, present[0].getDatanodeDescriptor(), there);
        assertEquals(1, chosen.length);
        assertFalse(there.contains(chosen[0]));
        return racks(chosen).get(0);
    }

    private static List<String> racks(DatanodeStorageInfo[] chosen) {
        return Arrays.stream(chosen)
                .map(storage -> storage.getDatanodeDescriptor().getNetworkLocation())
                .collect(Collectors.toList());
    }

    private static void assertDistinct(DatanodeStorageInfo[] chosen) {
        assertEquals(chosen.length, new HashSet<>(Arrays.asList(chosen)).size());
    }

    private void assertPlacedOutside(String rack, DatanodeStorageInfo[] chosen) {
        assertEquals(3, chosen.length);
        assertFalse(racks(chosen).contains(rack));
        assertEquals("two racks, as the default policy has them", 2, new HashSet<>(racks(chosen)).size());
        assertDistinct(chosen);
        assertLogged("Blocks written in rack /rack0 are placed by Hadoop's default policy:"
                + " rack /rack1 has no node for 2 of its replicas");
    }

    private void assertLogged(String line) {
        assertTrue(log.getOutput(), log.getOutput().contains(line));
    }
}
