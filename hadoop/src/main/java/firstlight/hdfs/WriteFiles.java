// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * Writes files into HDFS side by side, as DFSIO's mappers do, and records how long each file took.
 *
 * <p>{@code WriteFiles [-D KEY=VALUE ...] PREFIX FILES BYTES EVERY} writes FILES files of BYTES bytes each, named
 * {@code PREFIX-0} and so on. All begin at the next multiple of EVERY seconds of the host's clock, so that writers on
 * several hosts, each started at another time, begin together. A file's time is from its creation until the NameNode
 * has closed it. The rows are in {@code files.csv} of the working directory.
 */
public final class WriteFiles {
    private static final int PIECE = 1 << 20;

    private final Configuration conf;
    private final byte[] piece = new byte[PIECE];
    private final List<String> rows = new ArrayList<>();
    private final String prefix;
    private final long bytes;

    private WriteFiles(Configuration conf, String prefix, long bytes) {
        this.conf = conf;
        this.prefix = prefix;
        this.bytes = bytes;
    }

    /** Writes the files that the arguments name; exit code 2 if the arguments are wrong. */
    public static void main(String[] given) throws Exception {
        GenericOptionsParser options = new GenericOptionsParser(new HdfsConfiguration(), given);
        String[] arguments = options.getRemainingArgs();
        if (arguments.length != 4) {
            System.err.println("usage: WriteFiles [-D KEY=VALUE ...] PREFIX FILES BYTES EVERY, as /a 2 100000000 10");
            System.exit(2);
        }
        WriteFiles work = new WriteFiles(options.getConfiguration(), arguments[0], Long.parseLong(arguments[2]));
        work.writeAll(Integer.parseInt(arguments[1]), Long.parseLong(arguments[3]));
        System.exit(0);
    }

    private void writeAll(int count, long every) throws Exception {
        List<FileSystem> clients = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            // Each has its own client, as each mapper has, and has spoken to the NameNode before it begins.
            FileSystem client = FileSystem.newInstance(conf);
            client.exists(new Path("/"));
            clients.add(client);
        }
        waitForMultipleOf(TimeUnit.SECONDS.toMillis(every));
        ExecutorService threads = Executors.newFixedThreadPool(count);
        List<Future<Void>> writes = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            FileSystem client = clients.get(i);
            Path path = new Path(prefix + "-" + i);
            writes.add(threads.submit(() -> write(client, path)));
        }
        for (Future<Void> write : writes) {
            write.get();
        }
        store();
    }

    private static void waitForMultipleOf(long millis) throws InterruptedException {
        Thread.sleep(millis - System.currentTimeMillis() % millis);
    }

    private Void write(FileSystem client, Path path) throws IOException {
        long start = System.nanoTime();
        try (FSDataOutputStream out = client.create(path)) {
            for (long left = bytes; left > 0; left -= PIECE) {
                out.write(piece, 0, (int) Math.min(left, PIECE));
            }
        }
        double duration = (System.nanoTime() - start) / 1e3;
        synchronized (rows) {
            rows.add(String.format(Locale.ROOT, "%s,%.3f,%.3f,%d", path.getName(), start / 1e3, duration, bytes));
        }
        return null;
    }

    private void store() throws IOException {
        try (PrintWriter out =
                new PrintWriter(Files.newBufferedWriter(Paths.get("files.csv"), StandardCharsets.UTF_8))) {
            out.println("file,start_us,duration_us,bytes");
            rows.forEach(out::println);
        }
    }
}
