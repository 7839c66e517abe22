// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.spi.LoggingEvent;

/**
 * Records how long block writes took, by Hadoop's own clock: the durations that a DataNode reports to its logger
 * {@code clienttrace}.
 *
 * <p>Each block is written through a pipeline of DataNodes and each of them reports it. The row is the first one's, if
 * that is on the writer's host: it ends when the whole pipeline has acknowledged the block. The rows are in
 * {@code blocks.csv} of the working directory.
 */
public final class BlockTimes extends AppenderSkeleton {
    static final String HEAD = "block,start_us,duration_us,bytes";

    private static final Pattern WRITE = Pattern.compile("src: /([^:,]+):\\d+, dest: /([^:,]+):\\d+,"
            + ".* bytes: (\\d+), op: HDFS_WRITE,.* blockid: [^:]+:(\\w+), duration\\(ns\\): (\\d+)");

    private final Path file = Paths.get("blocks.csv");
    private Writer out;

    @Override
    public void activateOptions() {
        try {
            out = Files.newBufferedWriter(file, StandardCharsets.UTF_8);
            line(HEAD);
        } catch (IOException e) {
            errorHandler.error("cannot write " + file, e, 0);
        }
    }

    @Override
    protected void append(LoggingEvent event) {
        Optional<String> row = row(event.getRenderedMessage(), System.nanoTime());
        if (out != null && row.isPresent()) {
            try {
                line(row.get());
            } catch (IOException e) {
                errorHandler.error("cannot write " + file, e, 0);
            }
        }
    }

    /** A DataNode is ended by a signal, so that each row must be there at once. */
    private void line(String text) throws IOException {
        out.write(text + "\n");
        out.flush();
    }

    /** The row of a block write that ended at {@code now} and came from the DataNode's own host. */
    static Optional<String> row(String message, long now) {
        Matcher found = WRITE.matcher(message);
        if (!found.find() || !found.group(1).equals(found.group(2))) {
            return Optional.empty();
        }
        long duration = Long.parseLong(found.group(5));
        return Optional.of(String.format(
                Locale.ROOT,
                "%s,%.3f,%.3f,%s",
                found.group(4),
                (now - duration) / 1e3,
                duration / 1e3,
                found.group(3)));
    }

    @Override
    public void close() {
        try {
            if (out != null) {
                out.close();
            }
        } catch (IOException e) {
            errorHandler.error("cannot close " + file, e, 0);
        }
    }

    @Override
    public boolean requiresLayout() {
        return false;
    }
}
