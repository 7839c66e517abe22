//! Writes the reference of keys: `cargo run -p firstlight-spec --example reference > docs/reference/spec.md`.

fn main() {
    print!("{}", firstlight_spec::reference());
}
