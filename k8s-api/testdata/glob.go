// Prints testdata/glob.tsv: what Go's path.Match says of each pattern on each name.
//
//	go run glob.go > glob.tsv
package main

import (
	"fmt"
	"path"
)

func main() {
	patterns := []string{
		"", "*", "**", "***", "?", "??", "eth0", "eth1", "ETH1", "eth*", "*1", "e*1", "eth?", "eth??", "ens[0-9]", "ens[0-9]*",
		"[a-z]*", "[^a]", "[^a]*", "[!a]", "[!a]*", "[a]", "[ab]", "[a-c]", "[c-a]", "[^c-a]", "[^a-z]*", "[a-cx-z]*",
		"[", "]", "[]", "[]a]", "[^]", "[^]a]", "[a", "[a-", "[a-]", "[-a]", "[-]", "[a-b-c]", "[^-]", "[^", "[^a", "[a-z", "[[]", "[[]*", "[]]",
		"[\\]]", "[\\]*]", "[\\-a]", "[a\\-z]", "[\\\\]", "\\", "a\\", "\\*", "\\?", "\\[", "\\a", "e\\th1", "eth\\", "[\\", "[a\\", "[a-\\", "[a-\\]]",
		"{a,b}", "eth{0,1}", "eth1.100", "eth1.*", "*.100", "*.*", "*-*", "bond*", "b?nd0", "*eth*", "*a*b*c*", "a*a*a*a*b", "*[0-9]", "*[^0-9]",
		"en[op]*s[0-9]*", "e[nt]*", "eth1\\", "*\\", "*[", "*]", "eth[", "x[", "x\\", "zzz[", "zzz\\", "a/b", "*/b", "a*b", "?/b", "a?b", "[^a]b", "a[^b]b", "[/]b", "a[/]b",
		"ä*", "[ä-ö]*", "?th1", "*ö", "[^ä]", " ", "* *", "e*h*1", "*e*t*h*1*", "eth1*", "*eth1", "e**1", "[e]th[1]", "[e][t][h]?",
	}
	names := []string{
		"", "a", "b", "c", "z", "!", "-", "]", "[", "\\", "*", "?", "^", "eth0", "eth1", "eth10", "ETH1", "eth", "ens0", "ens9", "ens10", "ensa", "eno1", "enp0s3",
		"eth1.100", "eth1-100", "eth1@if2", "bond0", "a/b", "/b", "aab", "aaab", "aaaab", "aaaa", "xaybzc", "abc", "{a,b}", "eth{0,1}", "ä", "äö", "ö", "öth1", " ", "a b", "a]", "]a", "\\a",
	}
	for _, p := range patterns {
		for _, n := range names {
			verdict := "no"
			if ok, err := path.Match(p, n); err != nil {
				verdict = "bad"
			} else if ok {
				verdict = "yes"
			}
			fmt.Printf("%s\t%s\t%s\n", p, n, verdict)
		}
	}
}
