package demo

import (
	"context"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awssim/kubelet"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// demoAWSManifest is the node class, the pool and the Deployment of the demo on AWS.
//
//go:embed aws.yaml
var demoAWSManifest []byte

// awsStoryName is the story of --cloud-provider aws.
const awsStoryName = "aws"

const (
	demoAWSCluster = "sandbox"
	demoAWSQueue   = "interruptions"
	// demoAWSRelease is the image release that is published during the demo.
	demoAWSRelease = "v20261120"
)

func awsStory() story {
	return story{
		manifest: demoAWSManifest, step: "class and pool", applied: demoPool + ": AL2023, spot or on-demand, c, m or r with up to 4 vCPUs",
		play:  (*demo).playAWS,
		cloud: "aws", before: (*demo).startAWS,
		flags: []string{"--cluster-name=" + demoAWSCluster, "--interruption-queue=" + demoAWSQueue, "--timers=drift=10s"},
	}
}

// demoAWS is the simulated AWS of a demo. It ends with this process.
type demoAWS struct {
	sim         *awssim.Cloud
	environment []string
	stop        func()
}

// startAWS starts a simulated AWS beside the cluster. Its instances become nodes of the cluster.
func (d *demo) startAWS(ctx context.Context) (string, error) {
	joined, err := client.New(d.cluster.config, client.Options{})
	if err != nil {
		return "", fmt.Errorf("connecting the simulated instances: %w", err)
	}
	config := d.cluster.config
	kubelets := &kubelet.Kubelets{Client: joined, Cluster: kubelet.Cluster{
		Name: demoAWSCluster, Endpoint: config.Host, Authority: base64.StdEncoding.EncodeToString(config.CAData)}}
	sim, err := awssim.New(awssim.Options{
		Cluster: awssim.Cluster{Endpoint: config.Host, CA: string(config.CAData)}, Queue: demoAWSQueue, Seed: 1, Lag: time.Second, Hook: kubelets,
		Timing: awssim.Timing{Pending: time.Second, Boot: 4 * time.Second, ShuttingDown: 2 * time.Second},
	})
	if err != nil {
		return "", err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("opening the address of the simulated AWS: %w", err)
	}
	serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
	served := make(chan struct{})
	go func() { defer close(served); _ = sim.Serve(serving, listener) }()
	endpoint := "http://" + listener.Addr().String()
	d.aws = &demoAWS{
		sim: sim, stop: func() { cancel(); <-served },
		environment: []string{"AWS_ENDPOINT_URL=" + endpoint, "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=demo",
			"AWS_SECRET_ACCESS_KEY=demo", "AWS_EC2_METADATA_DISABLED=true"},
	}
	return "us-east-1 at " + endpoint + "; on-demand prices are those of AWS, spot prices are invented", nil
}

// playAWS scales up the pods, interrupts half of the machines, publishes a new image, and scales down.
func (d *demo) playAWS(ctx context.Context) error {
	for _, act := range []struct {
		name string
		play func(context.Context) error
	}{
		{"scale up", d.scaleUp}, {"interruption", d.interruptHalf}, {"image release", d.releaseImage}, {"scale down", d.scaleDown},
	} {
		if err := act.play(ctx); err != nil {
			return fmt.Errorf("%s: %w", act.name, err)
		}
	}
	return nil
}

// noticeAhead is the time between EC2's interruption notice for a spot instance and the interruption
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html).
const noticeAhead = 2 * time.Minute

// interruptHalf makes EC2 interrupt half of the spot instances. Their pods must run on other nodes before the two
// minutes are over.
func (d *demo) interruptHalf(ctx context.Context) error {
	alive := slices.DeleteFunc(d.aws.sim.Instances(),
		func(i awssim.Instance) bool { return i.State != "running" || i.CapacityType != karpv1.CapacityTypeSpot })
	interrupted := alive[:(len(alive)+1)/2]
	fmt.Fprintf(d.out, "\nInterruption: EC2 interrupts %d of %s, with a notice of two minutes\n\n", len(interrupted),
		table.Plural(len(alive), "spot instance"))
	before, launched := len(d.claimsNow()), d.history.count(claimCreated)
	began := time.Now()
	d.scaled = began
	machines := map[string]bool{}
	for _, i := range interrupted {
		machines["aws:///"+i.Zone+"/"+i.ID] = true
		if err := d.aws.sim.Interrupt(i.ID); err != nil {
			return fmt.Errorf("interrupting %s: %w", i.ID, err)
		}
	}
	err := d.await(ctx, noticeAhead, "all pods to run on other nodes", func() (bool, string) {
		moved := d.runningElsewhere(machines)
		left := d.claimsOf(machines)
		return moved == d.replicas && left == 0, fmt.Sprintf("%d of %s run on other nodes, %s left", moved,
			table.Plural(d.replicas, "pod"), table.Plural(left, "interrupted instance"))
	})
	if err != nil {
		return err
	}
	d.printTimeline(d.rowsSince(began, claimDeleting, claimCreated, claimInitialized, podGone, podRunning, nodeGone))
	fmt.Fprintf(d.out, "\n  All pods ran on other nodes %.1f s after the notice, %.1f s before the interruption; "+
		"%d claims were created, and %d existed before.\n",
		time.Since(began).Seconds(), (noticeAhead - time.Since(began)).Seconds(), d.history.count(claimCreated)-launched, before)
	_, err = d.printCost("Cost after the interruption")
	return err
}

// releaseImage publishes an image and makes the class select it: the fleet drifts and is replaced within the pool's
// budget.
func (d *demo) releaseImage(ctx context.Context) error {
	if _, err := d.aws.sim.ReleaseImages("al2023", demoAWSRelease); err != nil {
		return fmt.Errorf("releasing images: %w", err)
	}
	fmt.Fprintf(d.out, "\nImage release: al2023@%s is published and set in the node class; "+
		"the NodePool replaces 10%% of its nodes at a time\n\n", demoAWSRelease)
	old := map[string]bool{}
	for _, claim := range d.claimsNow() {
		old[claim.Status.ProviderID] = true
	}
	began := time.Now()
	d.scaled = began
	class := &awsv1.EC2NodeClass{}
	if err := d.objects.client.Get(ctx, types.NamespacedName{Name: "default"}, class); err != nil {
		return fmt.Errorf("reading the node class: %w", err)
	}
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"amiSelectorTerms":[{"alias":"al2023@%s"}]}}`, demoAWSRelease))
	if err := d.objects.client.Patch(ctx, class, patch); err != nil {
		return fmt.Errorf("changing the node class: %w", err)
	}
	d.history.watchLeaving()
	err := d.await(ctx, 2*time.Minute+time.Duration(len(old))*time.Minute, "the fleet to be replaced", func() (bool, string) {
		left := d.claimsOf(old)
		return left == 0 && d.runningElsewhere(old) == d.replicas, table.Plural(left, "node") + " with the old image left"
	})
	if err != nil {
		return err
	}
	d.printTimeline(d.rowsSince(began, claimCreated, claimInitialized, nodeCordoned, podGone, podRunning, nodeGone))
	peak := d.history.peak(demoPool)
	fmt.Fprintf(d.out, "\n  %s were replaced in %.1f s, at most %d at a time.\n", table.Plural(len(old), "node"),
		time.Since(began).Seconds(), peak.leaving)
	if most := (peak.nodes + 9) / 10; peak.leaving > most {
		return fmt.Errorf("%d nodes were removed at a time, but the budget of 10%% of %d allows %d", peak.leaving, peak.nodes, most)
	}
	_, err = d.printCost("Cost with the new image")
	return err
}

// claimsNow returns the claims that are not being deleted.
func (d *demo) claimsNow() []*karpv1.NodeClaim {
	_, claims, _ := d.history.present()
	return slices.DeleteFunc(claims, func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp != nil })
}

// runningElsewhere counts the pods that run on nodes of other machines.
func (d *demo) runningElsewhere(machines map[string]bool) int {
	pods, _, nodes := d.history.present()
	onMachine := map[string]bool{}
	for _, node := range nodes {
		onMachine[node.Name] = machines[node.Spec.ProviderID]
	}
	n := 0
	for _, pod := range pods {
		if on, known := onMachine[pod.Spec.NodeName]; known && !on && pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

// claimsOf counts the claims of machines that still exist.
func (d *demo) claimsOf(machines map[string]bool) int {
	_, claims, _ := d.history.present()
	return len(slices.DeleteFunc(claims, func(claim *karpv1.NodeClaim) bool { return !machines[claim.Status.ProviderID] }))
}

// rowsSince returns the objects that reached the stages since a time.
func (d *demo) rowsSince(began time.Time, stages ...stage) []timelineRow {
	var rows []timelineRow
	for _, s := range stages {
		rows = append(rows, timelineRow{string(s), d.history.since(s, began)})
	}
	return rows
}
