//! The plugin that makes VLAN interfaces.

fn main() -> std::process::ExitCode {
    cni::vlan()
}
