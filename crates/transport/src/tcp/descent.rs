//! Which of two neighbours a search meets first: the shape of a red-black tree (Guibas and Sedgewick, "A Dichromatic
//! Framework for Balanced Trees", FOCS 1978; Cormen et al., "Introduction to Algorithms", chapter 13).
//!
//! A Linux receiver keeps packets beyond a gap in such a tree. A packet that continues one of them and repeats the next
//! joins the one if the search meets that first, and is dropped as a duplicate otherwise (measured: over three racks
//! this decides each of the first ten such cases of Westwood+). The order of the nodes is their owner's; this is
//! only the shape.

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct TreeNode {
    parent: u32,
    /// The left and the right child.
    children: [u32; 2],
    red: bool,
}

/// A red-black tree without keys.
#[derive(Clone, Debug)]
pub(crate) struct Descent {
    nodes: Vec<TreeNode>,
    free: Vec<u32>,
    root: u32,
}

impl Descent {
    pub(crate) const fn new() -> Self {
        Descent { nodes: Vec::new(), free: Vec::new(), root: NONE }
    }

    pub(crate) fn clear(&mut self) {
        *self = Descent::new();
    }

    /// Whether a search for what lies between `node` and the next one meets `node` first.
    pub(crate) fn meets_before_next(&self, node: u32) -> bool {
        self.child(node, 1) != NONE
    }

    /// Adds a node between two neighbours.
    pub(crate) fn insert(&mut self, before: Option<u32>, after: Option<u32>) -> u32 {
        let (parent, side) = match (before, after) {
            (Some(before), _) if !self.meets_before_next(before) => (before, 1),
            (_, Some(after)) => (after, 0),
            _ => (NONE, 0),
        };
        let node = TreeNode { parent, children: [NONE; 2], red: true };
        let id = self.free.pop().unwrap_or(self.nodes.len() as u32);
        if id as usize == self.nodes.len() {
            self.nodes.push(node);
        } else {
            self.nodes[id as usize] = node;
        }
        if parent == NONE {
            self.root = id;
        } else {
            self.nodes[parent as usize].children[side] = id;
        }
        self.balance_inserted(id);
        id
    }

    /// Removes the first node in order.
    pub(crate) fn remove_first(&mut self, first: u32) {
        let TreeNode { parent, children: [_, child], red } = self.nodes[first as usize];
        if child != NONE {
            self.nodes[child as usize].parent = parent;
        }
        self.replace(first, parent, child);
        self.free.push(first);
        if !red {
            self.balance_removed(child, parent);
        }
    }

    fn child(&self, node: u32, side: usize) -> u32 {
        self.nodes[node as usize].children[side]
    }

    fn is_red(&self, node: u32) -> bool {
        node != NONE && self.nodes[node as usize].red
    }

    /// On which side of its parent a node is.
    fn side(&self, node: u32, parent: u32) -> usize {
        usize::from(self.child(parent, 1) == node)
    }

    fn replace(&mut self, node: u32, parent: u32, by: u32) {
        if parent == NONE {
            self.root = by;
        } else {
            let side = self.side(node, parent);
            self.nodes[parent as usize].children[side] = by;
        }
    }

    /// Turns `node` to one side, so that its child on the other is its parent.
    fn rotate(&mut self, node: u32, to: usize) {
        let up = self.child(node, 1 - to);
        let inner = self.child(up, to);
        let parent = self.nodes[node as usize].parent;
        self.nodes[node as usize].children[1 - to] = inner;
        if inner != NONE {
            self.nodes[inner as usize].parent = node;
        }
        self.replace(node, parent, up);
        self.nodes[up as usize].parent = parent;
        self.nodes[up as usize].children[to] = node;
        self.nodes[node as usize].parent = up;
    }

    fn paint(&mut self, node: u32, red: bool) {
        self.nodes[node as usize].red = red;
    }

    fn balance_inserted(&mut self, mut node: u32) {
        loop {
            let mut parent = self.nodes[node as usize].parent;
            if !self.is_red(parent) {
                break;
            }
            let grandparent = self.nodes[parent as usize].parent;
            let side = self.side(parent, grandparent);
            let uncle = self.child(grandparent, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(grandparent, true);
                node = grandparent;
                continue;
            }
            if self.side(node, parent) != side {
                self.rotate(parent, side);
                std::mem::swap(&mut node, &mut parent);
            }
            self.paint(parent, false);
            self.paint(grandparent, true);
            self.rotate(grandparent, 1 - side);
        }
        self.paint(self.root, false);
    }

    /// The way through `node`, a child of `parent`, has a black node too few.
    fn balance_removed(&mut self, mut node: u32, mut parent: u32) {
        while parent != NONE && !self.is_red(node) {
            let side = self.side(node, parent);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.paint(sibling, false);
                self.paint(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            let near = self.child(sibling, side);
            if !self.is_red(near) && !self.is_red(self.child(sibling, 1 - side)) {
                self.paint(sibling, true);
                node = parent;
                parent = self.nodes[node as usize].parent;
                continue;
            }
            if !self.is_red(self.child(sibling, 1 - side)) {
                self.paint(near, false);
                self.paint(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = near;
            }
            self.paint(sibling, self.is_red(parent));
            self.paint(parent, false);
            self.paint(self.child(sibling, 1 - side), false);
            self.rotate(parent, side);
            node = self.root;
            parent = NONE;
        }
        if node != NONE {
            self.paint(node, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Checks the subtree of `node` and returns its nodes in order and how many black ones each way down has.
    fn check(tree: &Descent, node: u32, parent: u32, order: &mut Vec<u32>) -> u32 {
        if node == NONE {
            return 0;
        }
        let TreeNode { parent: its, children: [left, right], red } = tree.nodes[node as usize];
        assert_eq!(its, parent);
        assert!(!red || !tree.is_red(parent), "two red nodes in a row");
        let black = check(tree, left, node, order);
        order.push(node);
        assert_eq!(check(tree, right, node, order), black, "as many black nodes on each way");
        black + u32::from(!red)
    }

    proptest! {
        /// Any order of additions and removals keeps the nodes' order and the colours' rules.
        /// Of two neighbours a search meets the one nearer to the root first.
        #[test]
        fn stays_balanced(steps in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8), 1..200)) {
            let (mut tree, mut order) = (Descent::new(), Vec::new());
            for (index, kind) in steps {
                if kind == 0 && !order.is_empty() {
                    tree.remove_first(order.remove(0));
                } else {
                    let at = index.index(order.len() + 1);
                    let before = at.checked_sub(1).map(|before| order[before]);
                    order.insert(at, tree.insert(before, order.get(at).copied()));
                }
                let mut found = Vec::new();
                check(&tree, tree.root, NONE, &mut found);
                prop_assert_eq!(&found, &order);
                prop_assert!(!tree.is_red(tree.root));
            }
            let depth = |mut node| {
                let mut depth = 0;
                while node != NONE {
                    (node, depth) = (tree.nodes[node as usize].parent, depth + 1);
                }
                depth
            };
            for pair in order.windows(2) {
                prop_assert_eq!(tree.meets_before_next(pair[0]), depth(pair[0]) < depth(pair[1]));
            }
        }
    }

    /// Five nodes that come in order: the second is the root, the fourth its right child, and the others are leaves.
    #[test]
    fn nodes_that_come_in_order() {
        let mut tree = Descent::new();
        let mut last = None;
        let nodes: Vec<u32> = (0..5).map(|_| *last.insert(tree.insert(last, None))).collect();
        let first: Vec<bool> = nodes[..4].iter().map(|&node| tree.meets_before_next(node)).collect();
        assert_eq!(first, [false, true, false, true]);
    }
}
