package demo

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// pass holds the controller's log data about a pass of its provision loop that created claims.
type pass struct {
	Claims   int       `json:"nodeclaims"`
	Decided  time.Time `json:"decidedAt"`
	Batch    float64   `json:"batchSeconds"`
	Schedule float64   `json:"scheduleSeconds"`
	Create   float64   `json:"createSeconds"`
}

// readPasses returns the passes in the order of the log.
func readPasses(log string) ([]pass, error) {
	file, err := os.Open(log)
	if err != nil {
		return nil, fmt.Errorf("reading the controller's log: %w", err)
	}
	defer file.Close()
	var passes []pass
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var p pass
		if json.Unmarshal(lines.Bytes(), &p) == nil && p.Claims > 0 && !p.Decided.IsZero() {
			passes = append(passes, p)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading the controller's log: %w", err)
	}
	return passes, nil
}

type timelineRow struct {
	name string
	span
}

func upStages(h *history, passes []pass) []timelineRow {
	var decided span
	for _, p := range passes {
		if decided.count == 0 {
			decided.first = p.Decided
		}
		decided.last, decided.count = p.Decided, decided.count+1
	}
	rows := []timelineRow{{string(podPending), h.span(podPending)}, {"plans decided", decided}}
	for _, s := range []stage{claimCreated, claimLaunched, claimRegistered, claimInitialized, podBound, podRunning} {
		rows = append(rows, timelineRow{string(s), h.span(s)})
	}
	return rows
}

// printTimeline prints when the first and the last object reached each stage, in seconds since the scale command.
func (d *demo) printTimeline(rows []timelineRow) {
	fmt.Fprintf(d.out, "  %-20s%7s%12s%12s\n", "", "count", "first", "last")
	for _, row := range rows {
		if row.count == 0 {
			fmt.Fprintf(d.out, "  %-20s%7d%12s%12s\n", row.name, 0, "-", "-")
			continue
		}
		fmt.Fprintf(d.out, "  %-20s%7d%10.3f s%10.3f s\n", row.name, row.count, row.first.Sub(d.scaled).Seconds(),
			row.last.Sub(d.scaled).Seconds())
	}
}

// printWork prints how much of the time between the last pending pod and the last claim was the controller's work:
// all but the batch window, in which the loop waits for more pods on purpose.
func (d *demo) printWork(passes []pass) {
	fmt.Fprintf(d.out, "\n  All pods ran %.1f s after the scale command.%s\n", d.history.span(podRunning).last.Sub(d.scaled).Seconds(),
		d.agreement())
	if len(passes) == 0 {
		return
	}
	last := passes[len(passes)-1]
	fmt.Fprintf(d.out, "  Last pending pod to last claim: %.3f s, of which %.0f ms are work (plan %.1f ms, create claims %.1f ms);\n"+
		"  the rest is the batch window, in which the controller waits for more pods.\n",
		d.history.span(claimCreated).last.Sub(d.history.span(podPending).last).Seconds(),
		1000*(last.Schedule+last.Create), 1000*last.Schedule, 1000*last.Create)
}

// agreement describes whether pods run where they were planned. kube-scheduler does not wait for a node that is not
// ready when another one has room left.
func (d *demo) agreement() string {
	kept, made := d.history.nominations()
	switch {
	case made == 0:
		return ""
	case kept == 1 && made == 1:
		return " The nominated pod runs on its planned node."
	case kept == made:
		return fmt.Sprintf(" All %d nominated pods run on their planned nodes.", made)
	}
	return fmt.Sprintf(" Of %d nominated pods, %d run on\n"+
		"  their planned nodes, the others on nodes that were ready earlier and had capacity.", made, kept)
}

// offering identifies a line of the cost: identical instances.
type offering struct{ instanceType, capacityType, zone string }

type offeringUse struct {
	nodes, pods        int
	price              float64 // USD per hour, of all nodes
	cpu, cpuUsed       int64   // millicores
	memory, memoryUsed int64   // bytes
}

// printCost prints what was launched, its price, and how much of it the pods request. It returns the total price in
// USD per hour.
func (d *demo) printCost(title string) (float64, error) {
	pods, claims, _ := d.history.present()
	prices := d.offeringPrices()
	byNode := map[string]*offeringUse{}
	sums := map[offering]*offeringUse{}
	total := &offeringUse{}
	for _, claim := range claims {
		key := offering{claim.Labels[corev1.LabelInstanceTypeStable], claim.Labels[karpv1.LabelCapacityType],
			claim.Labels[corev1.LabelTopologyZone]}
		price, known := prices[key]
		if !known {
			return 0, fmt.Errorf("the catalog has no offering %s, %s in %s, which claim %s has", key.instanceType,
				key.capacityType, key.zone, claim.Name)
		}
		if sums[key] == nil {
			sums[key] = &offeringUse{}
		}
		byNode[claim.Status.NodeName] = sums[key]
		for _, sum := range []*offeringUse{sums[key], total} {
			sum.nodes++
			sum.price += price
			sum.cpu += claim.Status.Allocatable.Cpu().MilliValue()
			sum.memory += claim.Status.Allocatable.Memory().Value()
		}
	}
	for _, pod := range pods {
		sum := byNode[pod.Spec.NodeName]
		if sum == nil {
			return 0, fmt.Errorf("pod %s is on node %q, which has no claim", pod.Name, pod.Spec.NodeName)
		}
		sum.use(pod)
		total.use(pod)
	}
	d.printOfferings(title, sums, total)
	return total.price, nil
}

func (s *offeringUse) use(pod *corev1.Pod) {
	s.pods++
	for i := range pod.Spec.Containers {
		requests := pod.Spec.Containers[i].Resources.Requests
		s.cpuUsed += requests.Cpu().MilliValue()
		s.memoryUsed += requests.Memory().Value()
	}
}

func (d *demo) printOfferings(title string, sums map[offering]*offeringUse, total *offeringUse) {
	fmt.Fprintf(d.out, "\n%s\n", title)
	fmt.Fprintln(d.out)
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "  type\tcapacity\tzone\tnodes\tpods\tCPU used\tmemory used\tUSD/hour")
	order := func(a, b offering) int {
		return cmp.Or(-cmp.Compare(sums[a].price, sums[b].price), cmp.Compare(a.instanceType, b.instanceType),
			cmp.Compare(a.zone, b.zone), cmp.Compare(a.capacityType, b.capacityType))
	}
	for _, key := range slices.SortedFunc(maps.Keys(sums), order) {
		printOffering(table, key, sums[key])
	}
	if len(sums) > 1 {
		printOffering(table, offering{instanceType: "total"}, total)
	}
	_ = table.Flush()
}

func printOffering(table *tabwriter.Writer, key offering, sum *offeringUse) {
	fmt.Fprintf(table, "  %s\t%s\t%s\t%d\t%d\t%.0f%%\t%.0f%%\t%.4f\n", key.instanceType, key.capacityType, key.zone, sum.nodes, sum.pods,
		100*float64(sum.cpuUsed)/float64(max(sum.cpu, 1)), 100*float64(sum.memoryUsed)/float64(max(sum.memory, 1)), sum.price)
}

// offeringPrices returns the prices of the catalog that the demo's controller uses, or those of the simulated AWS, in
// USD per hour.
func (d *demo) offeringPrices() map[offering]float64 {
	prices := map[offering]float64{}
	if d.aws != nil {
		for _, pool := range d.aws.sim.Pools() {
			prices[offering{pool.Type, pool.CapacityType, pool.Zone}] = pool.Price
		}
		return prices
	}
	types, _ := kwok.EmbeddedTypes()
	for i := range types {
		for _, o := range types[i].Offerings {
			prices[offering{types[i].Name, o.CapacityType, o.Zone}] = o.Price
		}
	}
	return prices
}
