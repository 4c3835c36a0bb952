package removal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// errNoKeeper means that no NodePool can be written.
var errNoKeeper = errors.New("no NodePool can store the record of machines without a NodePool")

// ballot holds cases and their verdicts.
type ballot struct {
	cases    []Case
	verdicts []Verdict
}

// remove records the allowed removals, and holds those that it cannot record. Removals on which both witnesses agree,
// and those that the operator allows, do not count.
func (b *Brake) remove(ctx context.Context, pools *fleet, ruling Ruling, q ballot) error {
	counted := map[string][]int{}
	for i, c := range q.cases {
		switch {
		case q.verdicts[i] != Remove || c.agreed() || b.wasRemoved(c):
		case ruling.permits(c.Pool):
			b.noteRemoved(c)
		default:
			counted[c.Pool] = append(counted[c.Pool], i)
		}
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(counted)) {
		err := b.record(ctx, pools, name, len(counted[name]))
		errs = append(errs, err)
		for _, i := range counted[name] {
			if err != nil {
				q.verdicts[i] = Hold
				continue
			}
			b.noteRemoved(q.cases[i])
		}
	}
	return errors.Join(errs...)
}

// noteRemoved records in memory that the removal of a machine is allowed.
func (b *Brake) noteRemoved(c Case) {
	b.removed[c.Machine] = b.Clock.Now()
	delete(b.wanted, c.Machine)
}

// record adds n removals to the record of a NodePool, or of no NodePool, and writes it.
func (b *Brake) record(ctx context.Context, pools *fleet, name string, n int) error {
	before, after := b.records[name], Record{}
	maps.Copy(after, before)
	after.add(b.serverTime(), n)
	b.records[name] = after
	var err error
	if pool := pools.byName[name]; pool != nil {
		// A NodePool that is gone needs no record.
		err = client.IgnoreNotFound(b.annotate(ctx, pool, karpv1.AnnotationRemovals, b.noted(name)))
	} else {
		err = b.recordNone(ctx, pools)
	}
	if err != nil {
		b.records[name] = before
	}
	return err
}

// recordNone writes the record of machines without a NodePool to one NodePool: preferably to one that has it already,
// and to another one if the write fails. A NodePool with an older copy drops it at its next write, which is after
// this one. Without any NodePool, the record is in memory only.
func (b *Brake) recordNone(ctx context.Context, pools *fleet) error {
	candidates := slices.SortedFunc(maps.Values(pools.byName), func(x, y *karpv1.NodePool) int {
		return cmp.Or(
			cmp.Compare(rank(!x.DeletionTimestamp.IsZero()), rank(!y.DeletionTimestamp.IsZero())),
			cmp.Compare(rank(!b.keepers[x.Name]), rank(!b.keepers[y.Name])),
			cmp.Compare(x.Name, y.Name))
	})
	if len(candidates) == 0 {
		return nil
	}
	errs := []error{errNoKeeper}
	for _, pool := range candidates {
		before := b.keepers
		b.keepers = map[string]bool{pool.Name: true}
		err := b.annotate(ctx, pool, karpv1.AnnotationRemovals, b.noted(pool.Name))
		if err == nil {
			return nil
		}
		b.keepers, errs = before, append(errs, err)
	}
	return errors.Join(errs...)
}

// rank returns a sort key that orders false before true.
func rank(is bool) int {
	if is {
		return 1
	}
	return 0
}

// keep writes the record of machines without a NodePool again when the NodePool that had it is gone.
func (b *Brake) keep(ctx context.Context, pools *fleet) error {
	if len(b.keepers) > 0 || b.records[""].within(b.serverTime(), b.Timers.RemovalWindow) == 0 {
		return nil
	}
	return b.recordNone(ctx, pools)
}

// noted returns the record as a NodePool's annotation. That of a keeper also contains the record of machines without
// a NodePool.
func (b *Brake) noted(name string) string {
	text := b.records[name].String()
	if b.keepers[name] {
		text = strings.TrimSpace(text + " " + b.records[""].prefixed(ofNone))
	}
	return text
}

// annotate sets an annotation of a NodePool, or removes it if the value is empty. The patch contains the value, so it
// does not depend on the age of the cached NodePool.
func (b *Brake) annotate(ctx context.Context, pool *karpv1.NodePool, key, value string) error {
	annotations := map[string]any{key: nil}
	if value != "" {
		annotations[key] = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err == nil {
		err = b.Client.Patch(ctx, pool.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	}
	if err != nil {
		return fmt.Errorf("writing the annotation %s of NodePool %s: %w", key, pool.Name, err)
	}
	return nil
}
