//! Tells the program its version in the same way as the one that writes its plan.

#[path = "../lab/build.rs"]
mod version;

fn main() {
    version::main();
}
