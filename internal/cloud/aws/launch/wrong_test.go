package launch

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// wrongAnswers are the ways in which an endpoint deviates from EC2.
var wrongAnswers = []awssim.FaultKind{awssim.FaultIgnoreFilters, awssim.FaultIgnoreTokens, awssim.FaultUnknownFields,
	awssim.FaultOlderFields, awssim.FaultOddPages}

// An account has two clusters. Whatever the endpoint does with filters, tokens, fields and pages: each claim has one
// machine; the cluster's list has exactly its own machines, each once and with its claim; and the resources of the
// other cluster remain when everything of this one is deleted.
func TestWrongAnswers(t *testing.T) {
	for _, kind := range wrongAnswers {
		t.Run(string(kind), func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				_, err := w.sim.Inject(awssim.Fault{Kind: kind})
				w.must(err)
				foreign := w.ofAnotherCluster(ctx, "foreign-1", "foreign-2")
				_, err = w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 1})
				w.must(err)
				unasked := 0
				l := w.launcher(func(o *Options) { o.Unasked = func(u call.Unasked) { unasked += u.Count } })
				own := w.launchUntil(ctx, l, names(5)...)
				w.boughtOnce(merged(own, foreign))

				// Another process.
				next := w.launcher(func(o *Options) { o.Unasked = func(u call.Unasked) { unasked += u.Count } })
				machines, err := next.Machines(ctx)
				w.must(err)
				listed := map[string]string{}
				for _, m := range machines {
					listed[m.Claim] = m.ProviderID
				}
				if len(machines) != len(own) {
					t.Errorf("%d machines are listed, want %d", len(machines), len(own))
				}
				for claim, id := range own {
					if listed[claim] != id {
						t.Errorf("claim %s has %s, the list has %s", claim, id, listed[claim])
					}
				}
				if again := w.launchUntil(ctx, next, names(5)...); again["claim-002"] != own["claim-002"] {
					t.Errorf("claim-002 has %s and %s", own["claim-002"], again["claim-002"])
				}
				if (unasked > 0) != (kind == awssim.FaultIgnoreFilters) {
					t.Errorf("%d items that were not requested are reported", unasked)
				}
				w.endAll(ctx, next, own)
				if alive := w.alive(); len(alive) != len(foreign) {
					t.Errorf("%d instances run after all of the cluster are terminated, want the %d of the other cluster", len(alive), len(foreign))
				}
			})
		})
	}
}

// ofAnotherCluster launches for claims of another cluster in the account.
func (w *world) ofAnotherCluster(ctx context.Context, names ...string) map[string]string {
	w.Helper()
	other := &records{entries: map[types.UID]Record{}, names: map[types.UID]string{}}
	l := w.launcher(func(o *Options) { o.ClusterName, o.RecordStore = "other", other })
	machines := map[string]string{}
	for _, name := range names {
		o := w.order(name)
		o.Cluster.Name = "other"
		m, err := l.Launch(ctx, o)
		w.must(err)
		machines[name] = m.ProviderID
	}
	return machines
}

func merged(a, b map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}

// endAll terminates the machines and deletes the launch templates of the class, and waits until EC2 has done so.
func (w *world) endAll(ctx context.Context, l *Launcher, machines map[string]string) {
	w.Helper()
	before := w.templatesOf(ctx, "other")
	for _, id := range machines {
		if err := l.Terminate(ctx, id); err != nil {
			w.Errorf("terminating %s: %v", id, err)
		}
	}
	w.must(l.DeleteTemplates(ctx, "default"))
	w.pass(time.Minute)
	for _, id := range machines {
		if err := l.Terminate(ctx, id); !errors.Is(err, cloud.ErrNotFound) {
			w.Errorf("terminating %s again: %v, want ErrNotFound", id, err)
		}
	}
	if after := w.templatesOf(ctx, "other"); len(before) == 0 || !slices.Equal(before, after) {
		w.Errorf("launch templates of the other cluster: %s, before %s", strings.Join(after, " "), strings.Join(before, " "))
	}
	if own := w.templatesOf(ctx, cluster); len(own) != 0 {
		w.Errorf("remaining launch templates: %s", strings.Join(own, " "))
	}
}

// templatesOf returns the launch templates of a cluster, as a launcher of that cluster reads them.
func (w *world) templatesOf(ctx context.Context, cluster string) []string {
	w.Helper()
	names, err := w.launcher(func(o *Options) { o.ClusterName = cluster }).templateNames(ctx, tagFilter("eks:eks-cluster-name", cluster))
	w.must(err)
	slices.Sort(names)
	return names
}

// On-demand machines do not use open capacity reservations, unless the order allows it.
func TestOpenReservations(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.sim.AddReservation(awssim.CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2})
		l := w.launcher()
		_, err := l.Launch(ctx, w.order("plain"))
		w.must(err)
		if r := w.sim.Reservations()[0]; r.Available != 2 {
			t.Errorf("an instance uses the reservation, %d of 2 are available", r.Available)
		}
		open := w.order("open")
		open.OpenReservations = true
		_, err = l.Launch(ctx, open)
		w.must(err)
		if r := w.sim.Reservations()[0]; r.Available != 1 {
			t.Errorf("%d of 2 are available, want 1: one instance may use it", r.Available)
		}
	})
}
