// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockPlacementPolicyDefault;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeStorageInfo;
import org.apache.hadoop.net.Node;
import org.apache.hadoop.net.NodeBase;
import org.apache.hadoop.util.Timer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Block placement for reconfigurable networks (reHDFS): the rack of a block's other replicas is a function of the
 * writer's rack, where Hadoop's default policy draws a rack at random for each block.
 *
 * <p>The first replica is where the default policy puts it: on the writer's node. All others are on random nodes of one
 * other rack, the partner of the first one's ({@link RackRing}). So each rack sends to one other rack and receives from
 * one, which a circuit switch serves with a single matching. The partner can be another one after each period of
 * {@link #ROTATION_KEY}, so that no two racks depend on each other for good.
 *
 * <p>Source: M. Mukerjee et al., "Overcoming End-to-End Challenges in Reconfigurable Datacenter Networks" (talk
 * submitted to SIGCOMM 2018, workloads). It says what is chosen and not what happens when the partner has no room. Here
 * Hadoop's default policy places what the partner cannot take, and the log has a line when that begins and ends.
 *
 * <p>Use: {@code dfs.block.replicator.classname = firstlight.hdfs.ReHdfsPlacementPolicy}.
 */
public class ReHdfsPlacementPolicy extends BlockPlacementPolicyDefault implements Configurable {
    /** How many places after the writer's rack its partner is; a whole number from 1. */
    public static final String SHIFT_KEY = "dfs.block.replicator.rehdfs.shift";

    /** After how long each rack gets the next partner, such as {@code 1s}; 0: never. */
    public static final String ROTATION_KEY = "dfs.block.replicator.rehdfs.rotation";

    /** The talk's proposal: "you could just change the function every second". */
    static final String ROTATION_DEFAULT = "1s";

    private static final Logger LOGGER = LoggerFactory.getLogger(ReHdfsPlacementPolicy.class);

    private final Timer timer;
    /** The racks whose last block the default policy has placed. */
    private final Set<String> defaulting = ConcurrentHashMap.newKeySet();

    private Configuration conf;
    private int shift = 1;
    private long rotationMillis;
    private volatile RackRing ring = new RackRing(Collections.emptyList());

    /** A policy that rotates by this machine's clock. Hadoop makes one by reflection and sets its configuration. */
    public ReHdfsPlacementPolicy() {
        this(new Timer());
    }

    /** A policy that rotates by this clock. */
    protected ReHdfsPlacementPolicy(Timer timer) {
        this.timer = timer;
    }

    /**
     * Reads the policy's two keys.
     *
     * @throws IllegalArgumentException if one of them is out of range
     */
    @Override
    public void setConf(Configuration given) {
        conf = given;
        if (given == null) {
            return;
        }
        shift = given.getInt(SHIFT_KEY, 1);
        if (shift < 1) {
            throw new IllegalArgumentException(SHIFT_KEY + " = " + shift + ": write a whole number from 1");
        }
        rotationMillis = given.getTimeDuration(ROTATION_KEY, ROTATION_DEFAULT, TimeUnit.MILLISECONDS);
        if (rotationMillis < 0) {
            throw new IllegalArgumentException(
                    ROTATION_KEY + " = " + given.get(ROTATION_KEY) + ": write a time such as 1s, or 0 for never");
        }
    }

    @Override
    public Configuration getConf() {
        return conf;
    }

    /**
     * Chooses the first replica as the default policy does, the others in one other rack.
     *
     * <p>Replicas that are there already ({@code results}) count: if some are outside the first one's rack, theirs is
     * the rack that the new ones join.
     */
    @Override
    protected Node chooseTargetInOrder(
            int wanted,
            Node writer,
            Set<Node> excluded,
            long blockSize,
            int maxPerRack,
            List<DatanodeStorageInfo> results,
            boolean avoidStale,
            boolean newBlock,
            EnumMap<StorageType, Integer> types)
            throws NotEnoughReplicasException {
        int total = results.size() + wanted;
        Node from = writer;
        if (results.isEmpty()) {
            from = super.chooseTargetInOrder(
                    1, writer, excluded, blockSize, maxPerRack, results, avoidStale, newBlock, types);
        }
        int left = total - results.size();
        if (left == 0) {
            return from;
        }
        String home = rack(results.get(0));
        Optional<String> other = otherRack(home, results);
        String why = "the cluster has no other rack";
        if (other.isPresent()) {
            try {
                chooseRandom(left, other.get(), excluded, blockSize, maxPerRack, results, avoidStale, types);
                onPlaced(home);
                return from;
            } catch (NotEnoughReplicasException e) {
                left = total - results.size();
                why = "rack " + other.get() + " has no node for " + left + " of its replicas";
            }
        }
        onDefault(home, why);
        int limit = super.getMaxNodesPerRack(results.size(), left)[1];
        return super.chooseTargetInOrder(
                left, from, excluded, blockSize, limit, results, avoidStale, newBlock, types);
    }

    /** Lets one rack have all replicas but one, where the default policy spreads them over racks. */
    @Override
    protected int[] getMaxNodesPerRack(int chosen, int wanted) {
        int[] limits = super.getMaxNodesPerRack(chosen, wanted);
        return new int[] {limits[0], Math.max(limits[1], chosen + limits[0] - 1)};
    }

    /** The rack that the replicas outside {@code home} are in, else the partner of {@code home}. */
    private Optional<String> otherRack(String home, List<DatanodeStorageInfo> results) {
        Optional<String> present =
                results.stream().map(ReHdfsPlacementPolicy::rack).filter(r -> !r.equals(home)).findFirst();
        return present.isPresent() ? present : ring().partner(home, shift + turn());
    }

    /** How many periods of rotation have passed. */
    private long turn() {
        return rotationMillis == 0 ? 0 : timer.monotonicNow() / rotationMillis;
    }

    /** The ring of the racks that the cluster has now; made anew when they have changed. */
    private RackRing ring() {
        RackRing known = ring;
        boolean same = known.racks().size() == clusterMap.getNumOfRacks()
                && known.racks().stream().allMatch(name -> clusterMap.getNode(name) != null);
        if (!same) {
            known = new RackRing(clusterMap.getLeaves(NodeBase.ROOT).stream()
                    .map(Node::getNetworkLocation)
                    .collect(Collectors.toList()));
            ring = known;
        }
        return known;
    }

    private static String rack(DatanodeStorageInfo storage) {
        return storage.getDatanodeDescriptor().getNetworkLocation();
    }

    private void onPlaced(String home) {
        if (defaulting.remove(home)) {
            LOGGER.info("Blocks written in rack {} have their other replicas in one rack again", home);
        }
    }

    private void onDefault(String home, String why) {
        if (defaulting.add(home)) {
            LOGGER.warn("Blocks written in rack {} are placed by Hadoop's default policy: {}", home, why);
        }
    }
}
