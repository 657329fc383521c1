//! The IPAM plugin.

fn main() -> std::process::ExitCode {
    cni::spiderpool()
}
