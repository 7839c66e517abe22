// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import static org.junit.Assert.assertEquals;
import static org.junit.Assert.assertNotEquals;

import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.Test;

/** Partners of racks. */
public class RackRingTest {
    @Test
    public void shift_of_one_is_the_next_rack_and_the_last_rack_has_the_first() {
        RackRing ring = new RackRing(Arrays.asList("/b", "/c", "/a", "/b"));
        assertEquals(Arrays.asList("/a", "/b", "/c"), ring.racks());
        assertEquals(Optional.of("/b"), ring.partner("/a", 1));
        assertEquals(Optional.of("/a"), ring.partner("/c", 1));
        assertEquals(Optional.of("/c"), ring.partner("/a", 2));
    }

    @Test
    public void each_shift_is_a_matching_and_no_rack_is_its_own_partner() {
        for (int racks = 2; racks < 12; racks++) {
            List<String> names = IntStream.range(0, racks).mapToObj(i -> "/rack" + i).collect(Collectors.toList());
            RackRing ring = new RackRing(names);
            for (long shift = 1; shift < 30; shift++) {
                Set<String> partners = new HashSet<>();
                for (String name : names) {
                    String partner = ring.partner(name, shift).get();
                    assertNotEquals(name, partner);
                    partners.add(partner);
                }
                assertEquals(new HashSet<>(names), partners);
            }
        }
    }

    @Test
    public void n_minus_one_shifts_bring_a_rack_to_all_others() {
        RackRing ring = new RackRing(Arrays.asList("/a", "/b", "/c", "/d", "/e"));
        long far = 7_000_000_000_000L;
        Set<String> partners =
                LongStream.range(far, far + 4).mapToObj(s -> ring.partner("/c", s).get()).collect(Collectors.toSet());
        assertEquals(new HashSet<>(Arrays.asList("/a", "/b", "/d", "/e")), partners);
    }

    @Test
    public void a_rack_alone_or_unknown_has_no_partner() {
        assertEquals(Optional.empty(), new RackRing(Collections.singleton("/a")).partner("/a", 1));
        assertEquals(Optional.empty(), new RackRing(Arrays.asList("/a", "/b")).partner("/elsewhere", 1));
        assertEquals(Optional.empty(), new RackRing(Collections.emptyList()).partner("/a", 1));
    }
}
