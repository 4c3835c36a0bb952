package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestSmallFleets shrinks ten fleets of three Deployments each to a third of their pods, on a control plane of its own. With
// the default budget, each ends at rest, at most 5% dearer than `simulate --live --disrupt --until-stable` says at first. No
// pod is pending for longer than a new node takes. It prints a Markdown table.
//
//	planned   the price at rest according to the simulation, without steps that wait for over ten minutes
//	launched  nodes launched until then, and those beyond the simulation's
//	moved     pods created again until then, with the longest time that one of them was pending
func TestSmallFleets(t *testing.T) {
	only(t)
	const dearer, limit = 1.05, 10 * time.Minute
	c := ownCluster(t)
	c.runController(t, filepath.Join(artifacts, "fleets-up.log"))
	var fleets []*smallFleet
	for i := range 10 {
		fleets = append(fleets, newSmallFleet(t, c, i))
	}
	for _, f := range fleets {
		for _, w := range f.workloads {
			await(t, 4*patience, "the pods of "+f.name+"/"+w.name+" to run", f.running(w.name, w.first))
		}
		await(t, patience, f.name+" to be settled", f.settled)
	}
	// Without the controller, nothing happens between the simulation and the first step.
	if err := c.controller.stop(); err != nil {
		t.Fatal(err)
	}
	for _, f := range fleets {
		f.shrink()
	}
	planned := c.simulated(t, "--until-stable")
	for _, f := range fleets {
		f.expect(planned)
	}
	began := time.Now()
	c.runController(t, filepath.Join(artifacts, "fleets.log"))
	for _, f := range fleets {
		await(t, limit, f.name+" to reach its planned price", func(ctx context.Context) error { return f.reached(ctx, dearer) })
	}
	await(t, limit, "all fleets to be at rest", func(ctx context.Context) error {
		for _, f := range fleets {
			if err := f.reached(ctx, dearer); err != nil {
				return err
			}
		}
		return c.simulated(t).atRest()
	})
	t.Logf("%.0f s\n| fleet | nodes | start | planned | rest | steps planned | launched | beyond the plan | pods moved | longest pending |\n"+
		"|---|---|---|---|---|---|---|---|---|---|", time.Since(began).Seconds())
	for _, f := range fleets {
		f.report(began)
	}
}

// smallFleet is a fleet with its plan.
type smallFleet struct {
	*stage
	workloads      []shrunk
	start, planned float64 // USD per hour
	nodes, claims  int     // at the start; claims that ever existed
	steps, adds    int     // planned
}

func newSmallFleet(t *testing.T, c *cluster, i int) *smallFleet {
	t.Helper()
	f := &smallFleet{stage: newStage(t, c, fmt.Sprintf("fleet-%d", i))}
	fixture, err := os.ReadFile(filepath.Join("testdata", "rest.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), f.name+".yaml")
	fixture = bytes.ReplaceAll(fixture, []byte(" rest"), []byte(" "+f.name))
	if err := os.WriteFile(path, fixture, 0o600); err != nil {
		t.Fatal(err)
	}
	f.apply(path)
	sizes := []string{"300m", "500m", "700m", "900m", "1200m", "1500m"}
	for k, name := range []string{"a", "b", "c"} {
		first := 6 + (5*i+3*k)%7
		w := shrunk{name: name, cpu: sizes[(i+2*k+i/3)%len(sizes)], first: first, last: (first + k) / 3}
		f.workloads = append(f.workloads, w)
		f.create(w.deployment(f.name, w.first))
	}
	return f
}

// shrink scales down, and waits until the pods are gone.
func (f *smallFleet) shrink() {
	f.t.Helper()
	for _, w := range f.workloads {
		f.scale(w.name, w.last)
	}
	for _, w := range f.workloads {
		await(f.t, patience, "pods of "+f.name+"/"+w.name+" to go", f.running(w.name, w.last))
	}
	f.start, f.nodes, f.claims = f.price(), len(f.ledger.nodesOf(f.name)), f.ledger.count(f.name).claimsEver
}

// expect takes the plan for the fleet from the answer for the cluster.
func (f *smallFleet) expect(a rearranged) {
	f.t.Helper()
	prices := map[string]float64{}
	for _, n := range f.ledger.nodesOf(f.name) {
		prices[n.Name] = f.priceOf(n)
	}
	for _, step := range a.Steps {
		mine := slices.ContainsFunc(step.Remove, func(name string) bool { _, ok := prices[name]; return ok })
		if !mine || step.WaitSeconds > 600 {
			continue
		}
		f.steps++
		for _, name := range step.Remove {
			delete(prices, name)
		}
		for _, add := range step.Add {
			prices[add.Name] = add.PricePerHour
			f.adds++
		}
	}
	for _, price := range prices {
		f.planned += price
	}
}

// reached fails until the fleet runs, is settled and costs what is planned.
func (f *smallFleet) reached(ctx context.Context, dearer float64) error {
	for _, w := range f.workloads {
		if err := f.running(w.name, w.last)(ctx); err != nil {
			return err
		}
	}
	if now := f.price(); now > f.planned*dearer {
		return fmt.Errorf("%s costs %.4f USD per hour, %.4f are planned", f.name, now, f.planned)
	}
	return f.settled(ctx)
}

// report prints the row of the fleet, and checks how long pods were pending.
func (f *smallFleet) report(began time.Time) {
	f.t.Helper()
	const seconds = 10 * time.Second // decisions, and times in whole seconds
	var starts, longest time.Duration
	for _, e := range f.ledger.claimsOf(f.name)[f.claims:] {
		claim := e.object.DeepCopy()
		if ready := claim.Condition(karpv1.ConditionInitialized); ready.IsTrue() {
			starts = max(starts, ready.LastTransitionTime.Sub(claim.CreationTimestamp.Time))
		}
	}
	created := 0
	for _, pod := range f.ledger.podsOf(f.name) {
		if pod.CreationTimestamp.Time.Before(began.Truncate(time.Second)) {
			continue
		}
		created++
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
				longest = max(longest, condition.LastTransitionTime.Sub(pod.CreationTimestamp.Time))
			}
		}
	}
	if longest > starts+seconds {
		f.t.Errorf("%s: a pod was pending for %s, nodes start within %s", f.name, longest, starts)
	}
	launched := f.ledger.count(f.name).claimsEver - f.claims
	f.t.Logf("| %s | %d | %.3f | %.3f | %.3f | %d | %d | %d | %d | %s |",
		f.name, f.nodes, f.start, f.planned, f.price(), f.steps, launched, max(0, launched-f.adds), created, longest)
}

// rearranged is what simulate --disrupt answers.
type rearranged struct {
	Steps []struct {
		WaitSeconds int64
		Remove      []string
		Add         []struct {
			Name         string
			PricePerHour float64
		}
	}
}

// atRest fails if there are steps.
func (a rearranged) atRest() error {
	if len(a.Steps) > 0 {
		return fmt.Errorf("%d steps are possible, the first removes %v", len(a.Steps), a.Steps[0].Remove)
	}
	return nil
}

// simulated returns the steps that the plugin finds for the cluster.
func (c *cluster) simulated(t *testing.T, flags ...string) (a rearranged) {
	t.Helper()
	arguments := append([]string{"simulate", "--live", "--kubeconfig", c.sandbox.Kubeconfig(), "--disrupt", "-o", "json"}, flags...)
	command := exec.CommandContext(t.Context(), plugin, arguments...)
	var problems bytes.Buffer
	command.Stderr = &problems
	output, err := command.Output()
	if err == nil {
		err = json.Unmarshal(output, &a)
	}
	if err != nil {
		t.Fatalf("simulate: %v\n%s", err, problems.String())
	}
	return a
}
