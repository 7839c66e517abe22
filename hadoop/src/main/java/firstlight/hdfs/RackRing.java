// SPDX-License-Identifier: MIT OR Apache-2.0
package firstlight.hdfs;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;

/**
 * The racks of a cluster in a ring, in the order of their names.
 *
 * <p>A shift of the ring gives each rack another one as its partner, and each rack is the partner of exactly one: as a
 * demand between racks it is one matching of a circuit switch.
 */
final class RackRing {
    private final List<String> racks;

    /** The ring of these racks; a rack that is named twice is one rack. */
    RackRing(Collection<String> names) {
        racks = new ArrayList<>(new TreeSet<>(names));
    }

    /** The racks in their order. */
    List<String> racks() {
        return racks;
    }

    /**
     * The partner of a rack: the rack that is {@code shift} places after it. Shifts are counted so that none gives a
     * rack to itself: of n racks, shift n is shift 1 again.
     *
     * @param shift 1 or more
     * @return nothing if the ring has no such rack, or no other
     */
    Optional<String> partner(String rack, long shift) {
        int place = racks.indexOf(rack);
        int others = racks.size() - 1;
        if (place < 0 || others < 1) {
            return Optional.empty();
        }
        int offset = 1 + (int) Math.floorMod(shift - 1, (long) others);
        return Optional.of(racks.get((place + offset) % racks.size()));
    }
}
