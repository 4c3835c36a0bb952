package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// digested lists the workloads of the digests. Each is planned with the seeds 1 to 3.
var digested = []string{"inflate-1k", "diverse-1k", "heterogeneous-1k", "spread-1k", "antiaffinity-500", "fill-2k",
	"cluster-100", "cluster-200-pending-400"}

// digest computes a hash of the answer to each of the workloads, or compares them with those of a file: a change that
// only moves or renames code changes no answer.
//
//	bench digest [-binary FILE] [-update] FILE
func digest(args []string, out io.Writer) error {
	flags := flag.NewFlagSet("digest", flag.ContinueOnError)
	binary := flags.String("binary", "bin/kubectl-karpenter", "the program whose `simulate` answers")
	update := flags.Bool("update", false, "write the file instead of comparing with it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("usage: bench digest [-binary FILE] [-update] FILE")
	}
	lines, err := digests(*binary)
	if err != nil {
		return err
	}
	if *update {
		return os.WriteFile(flags.Arg(0), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
	}
	golden, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	differ := 0
	known := strings.Split(strings.TrimSpace(string(golden)), "\n")
	for i, line := range lines {
		if i >= len(known) || known[i] != line {
			fmt.Fprintln(out, "differs:", line)
			differ++
		}
	}
	if differ > 0 || len(known) != len(lines) {
		return fmt.Errorf("%d of %d answers differ from %s, which has %d", differ, len(lines), flags.Arg(0), len(known))
	}
	fmt.Fprintf(out, "%d answers are the same as in %s\n", len(lines), flags.Arg(0))
	return nil
}

// digests returns a line for each answer: its hash, the workload, the seed and the flags.
func digests(binary string) ([]string, error) {
	var lines []string
	for _, name := range digested {
		for seed := 1; seed <= 3; seed++ {
			some, err := digestsOf(binary, name, seed)
			if err != nil {
				return nil, fmt.Errorf("%s, seed %d: %w", name, seed, err)
			}
			lines = append(lines, some...)
		}
	}
	return lines, nil
}

// digestsOf returns the lines of one workload. A cluster without pending pods has nothing to plan, only nodes to disrupt.
func digestsOf(binary, name string, seed int) ([]string, error) {
	set, err := workload.Named(name, seed)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "digest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	if err := set.Write(folder); err != nil {
		return nil, err
	}
	var modes [][]string
	cluster := strings.HasPrefix(name, "cluster-")
	if !cluster || strings.Contains(name, "-pending-") {
		modes = append(modes, nil)
	}
	if cluster {
		modes = append(modes, []string{"--disrupt", "--until-stable"})
	}
	var lines []string
	for _, mode := range modes {
		sum, err := answerHash(binary, folder, mode)
		if err != nil {
			return nil, err
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s seed %d %s", sum, name, seed, strings.Join(mode, " "))))
	}
	return lines, nil
}

// answerHash returns the hash of what simulate answers, without its statistics and without messages, whose wording may
// change.
func answerHash(binary, folder string, mode []string) (string, error) {
	text, _, err := child(1, binary, append([]string{"simulate", "-f", folder, "-o", "json"}, mode...)...)
	if err != nil {
		return "", err
	}
	var fields map[string]any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&fields); err != nil {
		return "", err
	}
	delete(fields, "stats")
	withoutMessages(fields)
	canonical, err := json.Marshal(fields) // the keys of maps are sorted
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sha256.Sum256(canonical))[:16], nil
}

// withoutMessages removes the members named message from a decoded JSON value, at any depth.
func withoutMessages(value any) {
	switch value := value.(type) {
	case map[string]any:
		delete(value, "message")
		for _, member := range value {
			withoutMessages(member)
		}
	case []any:
		for _, element := range value {
			withoutMessages(element)
		}
	}
}
