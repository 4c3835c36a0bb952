package sim

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var (
	digestFile   = flag.String("digests", "", "file with the hashes of the traces of some histories, which TestDigests compares")
	updateDigest = flag.Bool("update-digests", false, "write the file of -digests")
)

// digestedHistories is how many histories have a digest.
const digestedHistories = 200

// TestDigests compares the traces of histories with a file: a change that only moves or renames code changes no decision.
// A change of behavior or of the words of a trace does, so that the file is written again with it.
func TestDigests(t *testing.T) {
	if *digestFile == "" {
		t.Skip("needs -digests FILE; make digests has it")
	}
	var lines strings.Builder
	for n := range uint64(digestedHistories) {
		fmt.Fprintf(&lines, "%d %016x\n", n, Run(NewHistory(numbered(n)), Production()).Hash())
	}
	if *updateDigest {
		if err := os.WriteFile(*digestFile, []byte(lines.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	golden, err := os.ReadFile(*digestFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(golden), "\n")
	for i, got := range strings.Split(lines.String(), "\n") {
		if i >= len(want) || got != want[i] {
			t.Errorf("history %d differs: its trace is not the one that %s has", i, *digestFile)
		}
	}
}
