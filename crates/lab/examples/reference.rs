//! Writes the reference of spec keys: `cargo run -p firstlight-lab --example reference > docs/reference/spec.md`.

fn main() {
    print!("{}", firstlight_lab::spec::reference());
}
