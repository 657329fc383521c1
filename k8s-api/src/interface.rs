//! Names of network interfaces, as the kernel takes them (`dev_valid_name`).

/// Most bytes of a name (`IFNAMSIZ`, less its end).
pub const NAME_MAX: usize = 15;

/// No interface can be called so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidInterface {
    /// No text at all.
    #[error("an interface name must not be empty")]
    Empty,
    /// More than [`NAME_MAX`].
    #[error("an interface name has at most {NAME_MAX} bytes, not {0}")]
    Long(usize),
    /// `.` and `..` are folders.
    #[error("an interface name must not be '.' or '..'")]
    Folder,
    /// The kernel puts the name into paths, and gives ':' a meaning of its own.
    #[error("an interface name must not contain '/', ':', blanks or control characters")]
    Character,
}

/// Whether an interface can have this name.
pub fn check(name: &str) -> Result<(), InvalidInterface> {
    let forbidden = |c: char| matches!(c, '/' | ':') || c.is_whitespace() || c.is_control();
    match name {
        "" => Err(InvalidInterface::Empty),
        "." | ".." => Err(InvalidInterface::Folder),
        _ if name.len() > NAME_MAX => Err(InvalidInterface::Long(name.len())),
        _ if name.contains(forbidden) => Err(InvalidInterface::Character),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_the_kernel_takes_them() {
        for name in ["eth1", "eth1.100", "bond0", "enp0s31f6", "a", "eth-1_x@y", "...", "fifteen-bytes-x"] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        for (name, why) in [
            ("", InvalidInterface::Empty),
            (".", InvalidInterface::Folder),
            ("..", InvalidInterface::Folder),
            ("sixteen-bytes-xy", InvalidInterface::Long(16)),
            ("eth1/2", InvalidInterface::Character),
            ("eth1:0", InvalidInterface::Character),
            ("eth 1", InvalidInterface::Character),
            ("eth1\t", InvalidInterface::Character),
            ("eth1\u{7f}", InvalidInterface::Character),
        ] {
            assert_eq!(check(name), Err(why), "{name:?}");
        }
    }
}
