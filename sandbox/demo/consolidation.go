package demo

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/plugin/table"
)

//go:embed consolidation.yaml
var consolidationManifest []byte

//go:embed pools.yaml
var consolidationPools []byte

// consolidationStory is the story of a mixed fleet that loses half of its pods and is consolidated to the lowest
// possible cost.
func consolidationStory() story {
	return story{
		opening:  "60 mixed nodes that lose half of their pods,",
		manifest: consolidationManifest,
		step:     "deployment",
		applied:  demoDeployment + ": pods of 700m CPU and 512Mi; a PodDisruptionBudget allows 10% unavailable pods",
		flags:    []string{"--disruption-validation=5s"},
		play:     (*demo).consolidate,
	}
}

// wave is a pool and the number of pods that fill it.
type wave struct {
	pool string
	pods int
}

// consolidationWaves fill the pools to their limits: 28, 20, 8 and 4 nodes.
var consolidationWaves = []wave{{"small", 56}, {"medium", 100}, {"large", 88}, {"any", 44}}

// The story sets the budgets to this value; it is also given as text.
const (
	openShare = 40
	openText  = "40%"
)

// planTolerance is how far the final price of the fleet may exceed the planned one, as a share of it. The controller
// plans anew after every step.
const planTolerance = 0.15

// consolidate builds the fleet, removes half of its pods, prints the plan, waits until it is carried out, and fails
// if any pod was affected by more than a restart.
func (d *demo) consolidate(ctx context.Context) error {
	pods, err := d.buildFleet(ctx)
	if err != nil {
		return fmt.Errorf("building the fleet: %w", err)
	}
	pods /= 2
	d.progress.show("marking every second pod of each node for deletion")
	if err := d.markEverySecond(ctx); err != nil {
		return err
	}
	if err := d.scale(ctx, pods); err != nil {
		return err
	}
	err = d.await(ctx, 2*time.Minute, table.Plural(pods, "pod")+" to be left", func() (bool, string) {
		left, _, _ := d.history.present()
		return len(left) == pods, table.Plural(len(left), "pod") + " left"
	})
	if err != nil {
		return err
	}
	before, err := d.printCost("Cost before")
	if err != nil {
		return err
	}
	if err := d.printPlan(ctx); err != nil {
		return err
	}
	if err := d.carryOut(ctx, pods); err != nil {
		return err
	}
	after, err := d.printCost("Cost after")
	if err != nil {
		return err
	}
	return d.judge(pods, before, after)
}

// buildFleet creates one pool after the other and the pods that fill it. It returns the number of pods.
func (d *demo) buildFleet(ctx context.Context) (int, error) {
	fmt.Fprintf(d.out, "\nA fleet of four NodePools, whose budgets allow no disruption. To shorten the demo, the payback time is 10 s\n"+
		"instead of 1 h, the price of moving a pod is reduced by the same factor, and a decision is validated after 5 s\n"+
		"instead of 15 s.\n\n")
	pools := bytes.Split(consolidationPools, []byte("\n---\n"))
	sum := 0
	for i, wave := range consolidationWaves {
		began := time.Now()
		if err := d.createAll(ctx, pools[i]); err != nil {
			return 0, err
		}
		sum += wave.pods
		if err := d.scale(ctx, sum); err != nil {
			return 0, err
		}
		err := d.await(ctx, 4*time.Minute, table.Plural(sum, "pod")+" to run", func() (bool, string) {
			h := d.history
			return h.count(podRunning) >= sum && h.count(claimInitialized) >= h.count(claimCreated),
				fmt.Sprintf("%d running, %s", h.count(podRunning), table.Plural(h.count(claimCreated), "claim"))
		})
		if err != nil {
			return 0, err
		}
		d.progress.clear()
		fmt.Fprintf(d.out, "  pool %-11s%6.1f s   %s more, %s so far\n", wave.pool, time.Since(began).Seconds(),
			table.Plural(wave.pods, "pod"), table.Plural(d.history.count(claimCreated), "node"))
	}
	return sum, nil
}

// markEverySecond marks every second pod of each node for deletion when the Deployment is scaled down.
func (d *demo) markEverySecond(ctx context.Context) error {
	pods, _, _ := d.history.present()
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(a.Spec.NodeName, b.Spec.NodeName), cmp.Compare(a.Name, b.Name))
	})
	patch := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"-1"}}}`, karpv1.AnnotationPodDeletionCost))
	for i := 1; i < len(pods); i += 2 {
		if err := d.objects.client.Patch(ctx, pods[i].DeepCopy(), patch); err != nil {
			return fmt.Errorf("marking pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// printPlan opens the budgets and at once prints all steps until the fleet is stable.
func (d *demo) printPlan(ctx context.Context) error {
	// The launches of the last wave must have passed their payback time, or the plan would exclude them.
	err := d.awaitAnswer(ctx, time.Minute, "the payback time of the last launches", func(now *disruptAnswer) (bool, string) {
		waiting := now.waiting()
		return waiting == 0, table.Plural(waiting, "node") + " temporarily kept"
	})
	if err != nil {
		return err
	}
	if err := d.openBudgets(ctx); err != nil {
		return err
	}
	answer, err := d.liveAnswer(ctx, true)
	if err != nil {
		return fmt.Errorf("planning: %w", err)
	}
	d.planned = answer.After.PricePerHour
	fmt.Fprintf(d.out, "\nThe plan: %s until no saving is left, %s of each NodePool at a time. Prices and savings in USD per hour\n\n",
		table.Plural(len(answer.Steps), "step"), openText)
	d.printSteps(answer)
	fmt.Fprintf(d.out, "\n  %s become %d, %.4f USD/hour become %.4f; the lower bound is %.4f.\n",
		table.Plural(answer.Before.Nodes, "node"), answer.After.Nodes,
		answer.Before.PricePerHour, answer.After.PricePerHour, answer.LowerBoundPerHour)
	return nil
}

// awaitAnswer runs the engine on the fleet once a second, until done returns true.
func (d *demo) awaitAnswer(ctx context.Context, patience time.Duration, what string, done func(*disruptAnswer) (bool, string)) error {
	var last time.Time
	var wrong error
	state := "not computed yet"
	err := d.await(ctx, patience, what, func() (bool, string) {
		if time.Since(last) < time.Second {
			return false, state
		}
		last = time.Now()
		answer, err := d.liveAnswer(ctx, false)
		if wrong = err; err != nil {
			return false, err.Error()
		}
		var ok bool
		ok, state = done(answer)
		return ok, state
	})
	if err != nil && wrong != nil {
		return fmt.Errorf("%w (%w)", err, wrong)
	}
	return err
}

// openBudgets sets the time from which the story is measured. No pod may be evicted until all pools are open, so that
// the first plan covers all of them.
func (d *demo) openBudgets(ctx context.Context) error {
	if err := d.allowEvictions(ctx, "0", func(now int32) bool { return now == 0 }); err != nil {
		return err
	}
	d.scaled = time.Now()
	d.history.watchLeaving()
	for _, wave := range consolidationWaves {
		pool := &karpv1.NodePool{}
		pool.Name = wave.pool
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"disruption":{"budgets":[{"nodes":%q}]}}}`, openText))
		if err := d.objects.client.Patch(ctx, pool, patch); err != nil {
			return fmt.Errorf("changing the budget of NodePool %s: %w", wave.pool, err)
		}
	}
	return d.allowEvictions(ctx, `"10%"`, func(now int32) bool { return now > 0 })
}

// allowEvictions changes the number of unavailable pods that the PodDisruptionBudget allows, and waits until
// Kubernetes has applied it.
func (d *demo) allowEvictions(ctx context.Context, unavailable string, done func(allowed int32) bool) error {
	budget := &policyv1.PodDisruptionBudget{}
	budget.Namespace, budget.Name = demoNamespace, demoDeployment
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"maxUnavailable":%s}}`, unavailable))
	if err := d.objects.client.Patch(ctx, budget, patch); err != nil {
		return fmt.Errorf("changing the PodDisruptionBudget %s: %w", budget.Name, err)
	}
	generation := budget.Generation
	return d.await(ctx, time.Minute, "the status of the PodDisruptionBudget", func() (bool, string) {
		if err := d.objects.client.Get(ctx, client.ObjectKeyFromObject(budget), budget); err != nil {
			return false, err.Error()
		}
		return budget.Status.ObservedGeneration >= generation && done(budget.Status.DisruptionsAllowed),
			table.Plural(int(budget.Status.DisruptionsAllowed), "eviction") + " allowed"
	})
}

// carryOut waits until the controller has carried out all steps.
func (d *demo) carryOut(ctx context.Context, pods int) error {
	fmt.Fprintf(d.out, "\nExecution of the plan, in seconds since the change of the budgets\n\n")
	err := d.awaitAnswer(ctx, 10*time.Minute, "the end of the consolidation", func(now *disruptAnswer) (bool, string) {
		leaving, running := d.history.leavingNow(), d.history.runningNow()
		done := leaving == 0 && running == pods && now.ahead() == noStepLeft
		return done, fmt.Sprintf("%s in removal, %d of %d pods running, %s", table.Plural(leaving, "node"), running, pods, now.ahead())
	})
	if err != nil {
		return err
	}
	var rows []timelineRow
	for _, s := range []stage{nodeCordoned, claimCreated, claimInitialized, claimDeleting, podGone, podCreated,
		podPending, podBound, podRunning, nodeGone} {
		rows = append(rows, timelineRow{string(s), d.history.since(s, d.scaled)})
	}
	d.printTimeline(rows)
	return nil
}

// judge prints the cost for the pods and the savings, and fails if a guarantee was violated.
func (d *demo) judge(pods int, before, after float64) error {
	moved := d.history.restarts(d.scaled)
	var broken []string
	if moved.pending > 0 {
		broken = append(broken, table.Plural(moved.pending, "pod")+" waited for a node")
	}
	for _, wave := range consolidationWaves {
		peak := d.history.peak(wave.pool)
		if most := (peak.nodes*openShare + 99) / 100; peak.leaving > most {
			broken = append(broken, fmt.Sprintf("%d nodes of NodePool %s were removed at a time, but its budget allows %d",
				peak.leaving, wave.pool, most))
		}
	}
	if after >= before {
		broken = append(broken, fmt.Sprintf("the fleet costs %.4f USD/hour, and cost %.4f before", after, before))
	}
	if most := d.planned * (1 + planTolerance); after > most {
		broken = append(broken, fmt.Sprintf("the fleet costs %.4f USD/hour, more than the %.4f of the plan plus %.0f%%",
			after, d.planned, 100*planTolerance))
	}
	if len(broken) > 0 {
		return fmt.Errorf("a guarantee is violated: %s", strings.Join(broken, "; "))
	}
	fmt.Fprintf(d.out, "\n  %s of %s; none waited for a node; at most %.1f s from creation to running.\n"+
		"  %.4f USD/hour became %.4f, %.0f%% less, within the budgets of all NodePools.\n", table.Plural(moved.count, "move"),
		table.Plural(pods, "pod"), moved.longest.Seconds(), before, after, 100*(1-after/before))
	return nil
}

// printSteps prints the steps in their order. Steps that are alike share a line.
func (d *demo) printSteps(answer *disruptAnswer) {
	what, price := d.offerings()
	printSteps(d.out, answer, what, price)
}

// printSteps prints the table. A step that removes or launches nodes of several kinds has a line for each, to keep
// the table narrow.
func printSteps(out io.Writer, answer *disruptAnswer, what map[string]string, price map[string]float64) {
	type row struct {
		reason, out, in string // kinds, a line each
		pods            int
	}
	counts, savings := map[row]int{}, map[row]float64{}
	var order []row
	for _, step := range answer.Steps {
		r := row{step.Reason, kinds(step.Remove, func(node string) (string, float64) { return what[node], price[node] }),
			kinds(step.Add, func(n addedNode) (string, float64) { return n.InstanceType + " " + n.CapacityType, n.PricePerHour }), step.Moved}
		if counts[r]++; counts[r] == 1 {
			order = append(order, r)
		}
		savings[r] += step.Saving
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "  steps\treason\tpods/step\ttotal saving\tremoved/step\tlaunched/step")
	for _, r := range order {
		left, right := strings.Split(r.out, "\n"), strings.Split(r.in, "\n")
		fmt.Fprintf(table, "  %d\t%s\t%d\t%.4f\t%s\t%s\n", counts[r], r.reason, r.pods, savings[r], left[0], right[0])
		for i := 1; i < max(len(left), len(right)); i++ {
			fmt.Fprintf(table, "\t\t\t\t%s\t%s\n", lineOf(left, i), lineOf(right, i))
		}
	}
	_ = table.Flush()
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(out, strings.TrimRight(line, " \n"))
	}
}

// lineOf returns one of the lines, "" beyond the last.
func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// offerings returns the types and prices of the fleet's nodes, by name.
func (d *demo) offerings() (what map[string]string, price map[string]float64) {
	_, claims, _ := d.history.present()
	what, price = map[string]string{}, map[string]float64{}
	prices := d.offeringPrices()
	for _, claim := range claims {
		key := offering{claim.Labels[corev1.LabelInstanceTypeStable], claim.Labels[karpv1.LabelCapacityType],
			claim.Labels[corev1.LabelTopologyZone]}
		what[claim.Status.NodeName], price[claim.Status.NodeName] = key.instanceType+" "+key.capacityType, prices[key]
	}
	return what, price
}

// kinds counts nodes by kind, with the total price of each kind, one line per kind.
func kinds[T any](nodes []T, about func(T) (string, float64)) string {
	counts, sums := map[string]int{}, map[string]float64{}
	for _, n := range nodes {
		what, price := about(n)
		counts[what]++
		sums[what] += price
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s %.4f", counts[what], cmp.Or(what, "launched in an earlier step"), sums[what]))
	}
	return cmp.Or(strings.Join(parts, "\n"), "-")
}
