// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import java.io.File;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.server.datanode.SimulatedFSDataset;

/**
 * Runs a whole HDFS in this process and writes a file into it: {@code Rehearsal DIRECTORY}.
 *
 * <p>A Java that has seen this keeps the classes of NameNode, DataNode and client in an archive
 * ({@code -XX:ArchiveClassesAtExit}), from which the Javas of an experiment start in half of the time.
 */
final class Rehearsal {
    private static final String[] RACKS = {"/rack0", "/rack1", "/rack1"};

    private Rehearsal() {}

    public static void main(String[] arguments) throws Exception {
        Configuration conf = new HdfsConfiguration();
        conf.setClass("dfs.block.replicator.classname", ReHdfsPlacementPolicy.class, Object.class);
        SimulatedFSDataset.setFactory(conf);
        MiniDFSCluster.Builder builder = new MiniDFSCluster.Builder(conf, new File(arguments[0]));
        try (MiniDFSCluster cluster = builder.numDataNodes(RACKS.length).racks(RACKS).build()) {
            cluster.waitActive();
            try (FSDataOutputStream out = cluster.getFileSystem().create(new Path("/file"))) {
                out.write(new byte[1 << 20]);
            }
        }
        System.exit(0);
    }
}
