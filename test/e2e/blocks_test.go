package e2e

import (
	"context"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sample is a small cluster as it is stored, which is copied to create larger ones: block after block the same
// objects under other names. All names and UIDs are replaced by others of the same length wherever they occur,
// including owner references, nodes of pods and records of machines. The stored size remains the same, and nothing
// must be decoded.
type sample struct {
	once []stored // objects that exist once in any cluster: the pool, its class, the DaemonSets and their namespace
	each []stored // objects that every block has for itself
	// These are the texts of block 0 that are replaced.
	claims, daemonPods, uids []string
	nodes, pods              []string // names; pods are those of the first block's namespace
}

const (
	// blocks is the namespace of a sample's pods; the number is that of the block.
	blocks = "block-%04d"
	// ours is the namespace of the objects that exist once.
	ours = "loaded"
)

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// readSample reads the objects of a cluster that belong to the sample.
func readSample(ctx context.Context, r *registry) (*sample, error) {
	w, first := &sample{}, fmt.Sprintf(blocks, 0)
	for _, part := range []struct {
		of     *[]stored
		prefix string
		names  *[]string
	}{
		{&w.once, "/registry/karpenter.kwok.sh/kwoknodeclasses/", nil},
		{&w.once, "/registry/karpenter.sh/nodepools/", nil},
		{&w.once, "/registry/namespaces/" + ours, nil},
		{&w.once, "/registry/daemonsets/" + ours + "/", nil},
		{&w.each, "/registry/namespaces/" + first, nil},
		{&w.each, "/registry/karpenter.sh/nodeclaims/", &w.claims},
		{&w.each, "/registry/configmaps/kube-system/kwok-machine-", nil},
		{&w.each, "/registry/minions/", &w.nodes},
		{&w.each, "/registry/deployments/" + first + "/", nil},
		{&w.each, "/registry/replicasets/" + first + "/", nil},
		{&w.each, "/registry/poddisruptionbudgets/" + first + "/", nil},
		{&w.each, "/registry/pods/" + first + "/", &w.pods},
		{&w.each, "/registry/pods/" + ours + "/", &w.daemonPods},
	} {
		objects, err := r.read(ctx, part.prefix)
		if err != nil {
			return nil, err
		}
		if len(objects) == 0 {
			return nil, fmt.Errorf("there is nothing under %s", part.prefix)
		}
		*part.of = append(*part.of, objects...)
		for _, object := range objects {
			if part.names != nil {
				*part.names = append(*part.names, path.Base(string(object.Key)))
			}
		}
	}
	w.uids = uidsOf(w.each, uidsOf(w.once, nil))
	return w, nil
}

// uidsOf returns the UIDs in the objects, in order, except those in but.
func uidsOf(objects []stored, but []string) []string {
	found := map[string]bool{}
	for _, object := range objects {
		for _, uid := range uidPattern.FindAll(object.Value, -1) {
			found[string(uid)] = true
		}
	}
	for _, uid := range but {
		delete(found, uid)
	}
	return slices.Sorted(maps.Keys(found))
}

// names replaces the names of block 0 by those of another block.
func (w *sample) names(block int) *strings.Replacer {
	var pairs []string
	if block == 0 {
		return strings.NewReplacer()
	}
	for _, all := range []struct {
		of          []string
		base, width int
	}{{w.uids, 16, 12}, {w.claims, 36, 5}, {w.daemonPods, 36, 5}} {
		for i, name := range all.of {
			ordinal := strconv.FormatInt(int64(block*len(all.of)+i), all.base)
			end := strings.Repeat("0", all.width-len(ordinal)) + ordinal
			pairs = append(pairs, name, name[:len(name)-all.width]+end)
		}
	}
	pairs = append(pairs, fmt.Sprintf(blocks, 0), fmt.Sprintf(blocks, block))
	return strings.NewReplacer(pairs...)
}

// block returns the objects of a block.
func (w *sample) block(number int) []stored {
	names, objects := w.names(number), make([]stored, 0, len(w.each))
	for _, object := range w.each {
		objects = append(objects, stored{[]byte(names.Replace(string(object.Key))), []byte(names.Replace(string(object.Value)))})
	}
	return objects
}

// sizes describes the size of objects by kind.
func (w *sample) sizes() string {
	number, bytes := map[string]int{}, map[string]int{}
	for _, object := range w.each {
		kind := strings.SplitN(strings.TrimPrefix(strings.TrimPrefix(string(object.Key), "/registry/"), "karpenter.sh/"), "/", 2)[0]
		number[kind]++
		bytes[kind] += len(object.Value)
	}
	var lines []string
	for _, kind := range slices.Sorted(maps.Keys(number)) {
		lines = append(lines, fmt.Sprintf("%d %s of %d bytes", number[kind], kind, bytes[kind]/number[kind]))
	}
	return strings.Join(lines, ", ")
}

// TestBlock checks that a block has other names and UIDs than the first wherever they occur, with the same length,
// and that references to the objects that exist once are unchanged.
func TestBlock(t *testing.T) {
	const pool, claim, other, pod = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222", "33333333-3333-3333-3333-333333333333", "44444444-4444-4444-4444-444444444444"
	w := &sample{
		each: []stored{
			{[]byte("/registry/karpenter.sh/nodeclaims/loaded-abcdefgh"), []byte("loaded-abcdefgh " + claim + " of " + pool)},
			{[]byte("/registry/minions/kwok-loaded-abcdefgh-xyz12"), []byte("kwok-loaded-abcdefgh-xyz12 " + other + " of " + claim)},
			{[]byte("/registry/pods/block-0000/app-1"), []byte("\x0aapp-1 block-0000 " + pod + " kwok-loaded-abcdefgh-xyz12\xff")},
		},
		claims: []string{"loaded-abcdefgh"}, daemonPods: []string{"agent-q2w3e"},
	}
	w.uids = uidsOf(w.each, []string{pool})
	got := w.block(17)
	for i, object := range got {
		if len(object.Key) != len(w.each[i].Key) || len(object.Value) != len(w.each[i].Value) {
			t.Errorf("%q of %d bytes has become %q of %d", w.each[i].Key, len(w.each[i].Value), object.Key, len(object.Value))
		}
	}
	// There are three UIDs, of which block 17 has those from 51, and one claim, of which it has the 17th.
	want := []string{
		"/registry/karpenter.sh/nodeclaims/loaded-abc0000h loaded-abc0000h 22222222-2222-2222-2222-000000000033 of " + pool,
		"/registry/minions/kwok-loaded-abc0000h-xyz12 kwok-loaded-abc0000h-xyz12 33333333-3333-3333-3333-000000000034 of 22222222-2222-2222-2222-000000000033",
		"/registry/pods/block-0017/app-1 \x0aapp-1 block-0017 44444444-4444-4444-4444-000000000035 kwok-loaded-abc0000h-xyz12\xff",
	}
	for i, object := range got {
		if text := string(object.Key) + " " + string(object.Value); text != want[i] {
			t.Errorf("got  %q\nwant %q", text, want[i])
		}
	}
}
