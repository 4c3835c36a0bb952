package removal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientretry "k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// fleet holds what the limit depends on: the NodePools of the provider, the number of their machines, and their pauses.
type fleet struct {
	now    time.Time
	window time.Duration
	pools  map[string]*karpv1.NodePool
	// machines and pauses have the name of a NodePool, or pause.Fleet, as the key.
	machines map[string]int
	pauses   map[string]pause.Pause
	// keeper is the NodePool that has the newest pause of the fleet, empty for none.
	keeper string
}

// fleet reads the state. NodePools are read from the API server: the cache may lag behind the last removal.
func (l *Limiter) fleet(ctx context.Context) (*fleet, error) {
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	if err := l.Live.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	if err := l.Client.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing NodeClaims: %w", err)
	}
	f := &fleet{now: l.serverTime(), window: l.Timers.RemovalWindow + retry, pools: map[string]*karpv1.NodePool{}, machines: map[string]int{}}
	f.pauses = map[string]pause.Pause{pause.Fleet: l.unstored}
	for i := range pools.Items {
		pool := &pools.Items[i]
		if !l.Classes.OwnsPool(pool) {
			continue
		}
		f.pools[pool.Name] = pool
		list := pause.Parse(pool.Annotations[karpv1.AnnotationPauses])
		f.pauses[pool.Name] = list.Of(pause.Key{Reason: pause.Removal, Scope: pool.Name})
		before := f.pauses[pause.Fleet]
		p := list.Of(pause.Key{Reason: pause.Removal, Scope: pause.Fleet})
		if cmp.Or(p.At.Compare(before.At), cmp.Compare(p.Failures, before.Failures)) > 0 {
			f.pauses[pause.Fleet], f.keeper = p, pool.Name
		}
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if claim.Status.ProviderID == "" || !l.Classes.OwnsClaim(claim) {
			continue
		}
		f.machines[pause.Fleet]++
		f.machines[f.known(claim.Labels[karpv1.LabelNodePool])]++
	}
	for scope, p := range f.pauses {
		f.pauses[scope] = f.sane(scope, p)
	}
	return f, nil
}

// sane names the pause, and limits its times: a clock may have been set back since, or the annotation may have been edited.
func (f *fleet) sane(scope string, p pause.Pause) pause.Pause {
	p.Key, p.Name = pause.Key{Reason: pause.Removal, Scope: scope}, "involuntary removals of machines of NodePool "+scope
	if scope == pause.Fleet {
		p.Name = "involuntary removals of machines of all NodePools"
	}
	if p.At.After(f.now) {
		p.At = f.now
	}
	if most := f.now.Add(max(f.window, longestPause)); p.Until.After(most) {
		p.Until = most
	}
	return p
}

// longestPause is the longest pause that package pause begins.
const longestPause = 31 * time.Minute

// known returns the name if the NodePool exists, and an empty string otherwise.
func (f *fleet) known(name string) string {
	if f.pools[name] == nil {
		return ""
	}
	return name
}

// longestAllowed is how far in the future the operator's annotation may be. A time beyond that has no effect: a wrong
// year would lift the limit permanently.
const longestAllowed = 24 * time.Hour

// allowed reports whether the operator allows the removals of a NodePool: those of machines without one are allowed if all
// NodePools have the annotation.
func (f *fleet) allowed(pool string) bool {
	if pool == "" {
		return len(f.pools) > 0 && !slices.ContainsFunc(slices.Collect(maps.Keys(f.pools)), func(name string) bool { return !f.allowed(name) })
	}
	until, err := time.Parse(time.RFC3339, f.pools[pool].Annotations[karpv1.AnnotationRemovalsAllowedUntil])
	return err == nil && until.After(f.now) && !until.After(f.now.Add(longestAllowed))
}

// store writes the pauses of a NodePool and of the fleet to the NodePool. Without a NodePool, that of the fleet is written
// to one that can be written, preferably to the one that has it. If there is none, it is in memory only.
func (l *Limiter) store(ctx context.Context, f *fleet, name string) error {
	if name != "" {
		return l.write(ctx, f, f.pools[name])
	}
	if len(f.pools) == 0 {
		l.unstored = f.pauses[pause.Fleet]
		return nil
	}
	var errs []error
	for _, pool := range slices.SortedFunc(maps.Values(f.pools), func(a, b *karpv1.NodePool) int {
		return cmp.Or(rank(a.Name != f.keeper)-rank(b.Name != f.keeper), cmp.Compare(a.Name, b.Name))
	}) {
		err := l.write(ctx, f, pool)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
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

// write writes the pauses of a NodePool and of the fleet to the NodePool. Loops write other pauses of it, so the write uses
// the optimistic lock.
func (l *Limiter) write(ctx context.Context, f *fleet, pool *karpv1.NodePool) error {
	err := clientretry.RetryOnConflict(clientretry.DefaultRetry, func() error {
		base := &karpv1.NodePool{}
		if err := l.Live.Get(ctx, client.ObjectKeyFromObject(pool), base); err != nil {
			return err
		}
		list := pause.Parse(base.Annotations[karpv1.AnnotationPauses])
		for _, scope := range []string{pool.Name, pause.Fleet} {
			if p := f.pauses[scope]; p.Failures > 0 {
				list = list.With(p)
			}
		}
		changed := base.DeepCopy()
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, karpv1.AnnotationPauses, list.Text())
		return l.Client.Patch(ctx, changed, controller.Locked(base))
	})
	if err != nil {
		return fmt.Errorf("writing the pauses of removals to NodePool %s: %w", pool.Name, err)
	}
	return nil
}
