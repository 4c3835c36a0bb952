package workload

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// Set is a generated workload.
type Set struct {
	name     string
	seed     int
	types    []InstanceType
	pools    []poolShape
	pods     []object
	nodes    []object
	bound    []object
	existing bool // nodes.json and bound-pods.json are written
}

// spec is a parsed name. Zero values of types and parts stand for the default number.
type spec struct {
	seed    int
	count   int // pods; nodes for cluster
	pending int // of cluster
	types   int // instance types
	parts   int // Deployments, or shapes
}

func (s spec) typesOr(n int) int { return orNumber(s.types, n) }
func (s spec) partsOr(n int) int { return max(1, orNumber(s.parts, n)) }

func orNumber(n, otherwise int) int {
	if n > 0 {
		return n
	}
	return otherwise
}

var makersByKind = map[string]func(spec) *Set{
	"inflate": inflate, "diverse": diverse, "heterogeneous": heterogeneous, "spread": spreads, "antiaffinity": antiAffinity,
	"cluster": cluster, "crowded": crowded, "fill": fill, "everyday": everyday,
}

// small are workloads with fewer types, for tests.
var small = map[string]spec{
	"inflate-200":       {types: 120},
	"diverse-200":       {types: 120},
	"heterogeneous-300": {types: 200, parts: 60},
	"spread-200":        {types: 120, parts: 5},
	"antiaffinity-120":  {types: 120, parts: 6},
	"cluster-20":        {types: 120},
}

// Small returns the names of workloads that are small in every respect.
func Small() []string {
	return []string{"antiaffinity-120", "cluster-20", "diverse-200", "heterogeneous-300", "inflate-200", "spread-200"}
}

var naming = regexp.MustCompile(`^([a-z]+)-([0-9]+)(k?)(?:-pending-([0-9]+)(k?))?$`)

// Named generates a workload. The name is one of the kinds in the package comment with a number.
func Named(name string, seed int) (*Set, error) {
	m := naming.FindStringSubmatch(name)
	if m == nil || makersByKind[m[1]] == nil || m[4] != "" && m[1] != "cluster" {
		return nil, fmt.Errorf("workload %q: not of the form KIND-N or cluster-N-pending-M, where N may end with k", name)
	}
	s := small[name]
	s.seed = seed
	var err error
	if s.count, err = number(m[2], m[3]); err == nil && m[4] != "" {
		s.pending, err = number(m[4], m[5])
	}
	if err != nil {
		return nil, fmt.Errorf("workload %q: %w", name, err)
	}
	set := makersByKind[m[1]](s)
	set.name, set.seed = name, seed
	return set, nil
}

func number(digits, thousands string) (int, error) {
	n, err := strconv.Atoi(digits)
	if thousands != "" {
		n *= 1000
	}
	if err == nil && (n < 1 || n > 10_000_000) {
		err = fmt.Errorf("%d is not between 1 and ten million", n)
	}
	return n, err
}

// Write writes the workload into a folder, which is created if needed.
func (s *Set) Write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder of a workload: %w", err)
	}
	pools := make([]object, len(s.pools))
	for i, p := range s.pools {
		pools[i] = p.object()
	}
	files := map[string]func(io.Writer) error{
		"instance-types.json": func(w io.Writer) error { return writeLines(w, `{"instanceTypes":[`, s.types) },
		"nodepools.json":      func(w io.Writer) error { return writeLines(w, listHead, pools) },
		"pods.json":           func(w io.Writer) error { return writeLines(w, listHead, s.pods) },
		"meta.json":           s.writeMeta,
	}
	if s.existing {
		files["nodes.json"] = func(w io.Writer) error { return writeLines(w, listHead, s.nodes) }
		files["bound-pods.json"] = func(w io.Writer) error { return writeLines(w, listHead, s.bound) }
	}
	for name, write := range files {
		if err := writeFile(filepath.Join(folder, name), write); err != nil {
			return fmt.Errorf("writing a workload: %w", err)
		}
	}
	return nil
}

const listHead = `{"apiVersion":"v1","kind":"List","items":[`

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<20)
	err = write(w)
	if err == nil {
		err = w.Flush()
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// writeLines writes a list with one element per line.
func writeLines[T any](w io.Writer, head string, items []T) error {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if _, err := io.WriteString(w, head+"\n"); err != nil {
		return err
	}
	for i, item := range items {
		b.Reset()
		if err := encoder.Encode(item); err != nil {
			return err
		}
		if i+1 < len(items) {
			b.Truncate(b.Len() - 1)
			b.WriteString(",\n")
		}
		if _, err := w.Write(b.Bytes()); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "]}\n")
	return err
}

// meta is the content of meta.json.
type meta struct {
	Name           string   `json:"name"`
	Seed           int      `json:"seed"`
	Pods           int      `json:"pods"`
	Nodes          int      `json:"nodes"`
	BoundPods      int      `json:"boundPods"`
	InstanceTypes  int      `json:"instanceTypes"`
	NodePools      int      `json:"nodePools"`
	ProviderLabels []string `json:"providerLabels"`
}

func (s *Set) writeMeta(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", " ")
	return encoder.Encode(meta{s.name, s.seed, len(s.pods), len(s.nodes), len(s.bound), len(s.types), len(s.pools), providerLabels})
}
