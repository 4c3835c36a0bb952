package aws

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
)

// The production periods of the controllers above the provider (controller.Production): the garbage collection of
// machines, and the drift check of a claim.
const (
	collectionPeriod = 2 * time.Minute
	driftPeriod      = 5 * time.Minute
)

var thousand = flag.Bool("thousand", false, "count the calls of a thousand nodes, too, which takes a quarter of a minute")

// TestSteadyCalls counts the calls to AWS per hour for a fleet that does not change, on a virtual clock, and compares
// them with docs/aws-operations.md.
func TestSteadyCalls(t *testing.T) {
	documented := documentedCalls(t)
	sizes := []int{100}
	if *thousand {
		sizes = append(sizes, 1000)
	}
	for _, nodes := range sizes {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				counts := steady(t, nodes)
				total := 0
				for _, call := range slices.Sorted(maps.Keys(counts)) {
					total += counts[call]
					if want := documented[call][nodes]; counts[call] != want {
						t.Errorf("%d nodes: %s %d times an hour, docs/aws-operations.md has %d", nodes, call, counts[call], want)
					}
				}
				for call, by := range documented {
					if call != "all" && by[nodes] != counts[call] {
						t.Errorf("docs/aws-operations.md has %s %d times an hour for %d nodes, it is %d", call, by[nodes], nodes, counts[call])
					}
				}
				if want := documented["all"][nodes]; want != total {
					t.Errorf("%d nodes: %d calls an hour in total, docs/aws-operations.md has %d", nodes, total, want)
				}
			})
		})
	}
}

// steady runs an unchanging fleet for an hour, after an hour to settle, and returns the calls by service and action.
func steady(t *testing.T, nodes int) map[string]int {
	t.Helper()
	w := newVirtualWorld(t, quick(), "m5.large")
	p := w.provider(t, func(o *Options) {
		o.Types = nil // all types
	})
	check(t, p.Prepare(t.Context()))
	claims := fleetOf(t, p, nodes)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	running := 0
	every := func(period time.Duration, do func(context.Context)) {
		running++
		go func() {
			defer func() { done <- struct{}{} }()
			for ctx.Err() == nil {
				do(ctx)
				idle(ctx, period)
			}
		}()
	}
	reconciler := &class.Reconciler{Client: w.api, Sources: p.sources, DeleteTemplates: p.launcher.DeleteTemplates, Now: time.Now,
		DryRun: &class.DryRun{EC2: w.clients.EC2, Calls: p.sources.Calls, Cluster: testCluster}}
	every(time.Minute, func(ctx context.Context) {
		_, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: "default"}})
		noted(ctx, t, err)
	})
	every(collectionPeriod, func(ctx context.Context) {
		machines, err := p.Machines(ctx)
		if noted(ctx, t, err); err == nil && len(machines) != nodes {
			t.Errorf("%d machines, want %d", len(machines), nodes)
		}
	})
	// Drift is determined from the list of machines, so a few claims represent all.
	const asked = 20
	for i, claim := range claims[:asked] {
		every(driftPeriod, func(ctx context.Context) {
			idle(ctx, driftPeriod*time.Duration(i)/asked) // drift checks are spread over the period
			reason, err := p.Drifted(ctx, claim, poolOf("default"))
			if noted(ctx, t, err); reason != "" {
				t.Errorf("%s has drifted: %s", claim.Name, reason)
			}
		})
	}
	watcher, err := p.watcher()
	check(t, err)
	every(time.Hour, func(ctx context.Context) { noted(ctx, t, watcher.RunStatus(ctx)) })
	every(time.Hour, func(ctx context.Context) { noted(ctx, t, p.rounds(logr.Discard()).Start(ctx)) })
	idle(ctx, 10*time.Minute+30*time.Second)
	w.sim.ResetCalls()
	idle(ctx, time.Hour)
	counts := map[string]int{}
	for call, n := range w.sim.Calls() {
		if call.Action != "DeleteLaunchTemplate" { // the launch's template becomes idle after an hour, which happens once
			counts[call.Service+":"+call.Action] += n
		}
	}
	cancel()
	for range running {
		<-done
	}
	return counts
}

// fleetOf launches the given number of machines at once and returns their claims.
func fleetOf(t *testing.T, p *Provider, nodes int) []*karpv1.NodeClaim {
	t.Helper()
	claims, errs := make([]*karpv1.NodeClaim, nodes), make([]error, nodes)
	var all sync.WaitGroup
	for i := range claims {
		name := fmt.Sprintf("node-%04d", i)
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name),
			Labels: map[string]string{karpv1.LabelNodePool: "pool"}}}
		c.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "default"}
		c.Spec.Requirements = []karpv1.Requirement{oneOf(corev1.LabelInstanceTypeStable, "m5.large"),
			oneOf(karpv1.LabelCapacityType, karpv1.CapacityTypeOnDemand)}
		claims[i] = c
		all.Go(func() {
			machine, err := p.Launch(t.Context(), c)
			if errs[i] = err; err != nil {
				return
			}
			maps.Copy(c.Labels, machine.Labels)
			c.Annotations, c.Status.ProviderID, c.Status.ImageID = machine.Annotations, machine.ProviderID, machine.ImageID
		})
	}
	all.Wait()
	check(t, errors.Join(errs...))
	return claims
}

func noted(ctx context.Context, t *testing.T, err error) {
	if err != nil && ctx.Err() == nil {
		t.Error(err)
	}
}

func idle(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func oneOf(key string, values ...string) karpv1.Requirement {
	return karpv1.Requirement{Key: key, Operator: "In", Values: values}
}

var callRow = regexp.MustCompile("^\\| `?([a-z0-9]+(?::[A-Za-z]+)?)`? \\| ([0-9,]+) \\| ([0-9,]+) \\|")

// documentedCalls parses the table in docs/aws-operations.md: calls per hour by action, for 100 and 1,000 nodes.
func documentedCalls(t *testing.T) map[string]map[int]int {
	t.Helper()
	text, err := os.ReadFile(root + "/docs/aws-operations.md")
	check(t, err)
	_, section, found := strings.Cut(string(text), "## Calls an hour")
	if !found {
		t.Fatal("docs/aws-operations.md has no table of calls")
	}
	calls := map[string]map[int]int{}
	for line := range strings.Lines(section) {
		if cells := callRow.FindStringSubmatch(line); cells != nil {
			few, _ := strconv.Atoi(strings.ReplaceAll(cells[2], ",", ""))
			many, _ := strconv.Atoi(strings.ReplaceAll(cells[3], ",", ""))
			calls[cells[1]] = map[int]int{100: few, 1000: many}
		}
	}
	return calls
}
