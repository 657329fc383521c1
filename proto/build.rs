//! Compiles the contracts without protoc. The device-plugin API is compiled twice: see `src/lib.rs`.

use std::{env, fs, io, path::PathBuf};

const DEVICE_PLUGIN: &str = "deviceplugin/v1beta1/api.proto";
const POD_RESOURCES: &str = "podresources/v1/api.proto";
const AGENT: &str = "agent/v1/agent.proto";

fn main() -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    let files = || protox::compile([DEVICE_PLUGIN], ["."]).map_err(io::Error::other);
    tonic_prost_build::configure().compile_fds(files()?)?;
    let pod_resources = protox::compile([POD_RESOURCES], ["."]).map_err(io::Error::other)?;
    tonic_prost_build::configure().compile_fds(pod_resources)?;
    let agent = protox::compile([AGENT], ["."]).map_err(io::Error::other)?;
    tonic_prost_build::configure().compile_fds(agent)?;

    let plugin = out.join("plugin");
    fs::create_dir_all(&plugin)?;
    tonic_prost_build::configure()
        .build_client(false)
        .extern_path(".v1beta1.ListAndWatchResponse", "crate::encoded::EncodedList")
        .out_dir(plugin)
        .compile_fds(files()?)?;
    println!("cargo::rerun-if-changed={DEVICE_PLUGIN}");
    println!("cargo::rerun-if-changed={POD_RESOURCES}");
    println!("cargo::rerun-if-changed={AGENT}");
    Ok(())
}
