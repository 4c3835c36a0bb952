// Package demo demonstrates the whole system on a control plane of its own: the controller and the operator's tool are
// the real programs, and run as processes.
//
//	karpenter-sandbox demo ── runs ──┬─ a control plane (internal/testing/sandbox)
//	        |                        ├─ karpenter controller
//	        | watches pods,          ├─ a simulated AWS, in this process (--cloud-provider aws)
//	        v claims and nodes       └─ kubectl-karpenter simulate --disrupt (story consolidation)
//	  report: when each stage was reached, prices, and whether the guarantees hold
//
// A story is a manifest and a function (story.go). It checks its own guarantees. The package must not know how a
// decision is made: it knows the programs by their flags, logs and answers only.
package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// demoOptions configures a demo.
type demoOptions struct {
	story    string
	cloud    string
	replicas int
	keep     bool
	dataDir  string
	service  string
	assets   sandbox.AssetsOptions
}

const demoNamespace, demoDeployment, demoPool = "default", "inflate", "default"

// NewCommand returns the verb. dataDir is the default directory, and service is the Service of the cluster that points
// to this machine, by which the API server reaches the controller.
func NewCommand(dataDir, service string) *cobra.Command {
	options := demoOptions{service: service}
	command := &cobra.Command{
		Use:   "demo",
		Short: "Show the launch and the removal of nodes on a separate control plane",
		Long: `Start a real Kubernetes control plane on this machine with simulated kubelets, and
the controller; scale a Deployment from zero to many pods; print when each step
happened and what the nodes cost; scale down, and print when the nodes are removed;
stop all processes. The demo needs no network and no cloud.

The story consolidation starts with a mixed fleet of 60 nodes and deletes half of the
pods. The plan of the consolidation is printed with reasons and prices, and is carried
out within budgets. The demo fails if a pod has to wait for a node, a budget is
exceeded, or the fleet ends no cheaper than before or far above the price of the plan.

With --cloud-provider aws, the nodes are instances of a simulated AWS. Between the two
scalings, EC2 interrupts half of the spot instances, and a new image is released. The
demo fails if the pods do not run on other nodes within the two minutes of the notice,
or if a budget is exceeded. With --story capacity as well, machines are launched into a
capacity reservation until it is used up, and into each partition of a placement group.
Traffic is shifted away from the zone of a machine on demand, and the demo fails if new
ones are not in other zones.

The data directory contains the logs. Every demo starts with an empty cluster.`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if err := options.check(); err != nil {
				return err
			}
			if command.Flags().Changed("replicas") && options.story != scaleStoryName && options.story != awsStoryName {
				return cli.UsageErrorf("--replicas requires --story %s", scaleStoryName)
			}
			ctrllog.SetLogger(logr.Discard()) // of the demo's own watches; the controller has its own log
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // so that a second Ctrl-C ends the program
			show := &demo{demoOptions: options, out: command.OutOrStdout(), progress: newProgress(command.ErrOrStderr())}
			err := show.run(ctx)
			if ctx.Err() != nil {
				return errors.New("demo: interrupted; all processes of the demo are stopped")
			}
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.story, "story", scaleStoryName, "the story: "+storyNames())
	flags.StringVar(&options.cloud, "cloud-provider", "kwok",
		"kwok (simulated nodes) or aws (simulated AWS, with an interruption and a new image)")
	flags.IntVar(&options.replicas, "replicas", 100, "story scale: number of pods")
	flags.BoolVar(&options.keep, "keep", false, "story scale: keep the pods, their nodes, the controller and the control plane running")
	flags.StringVar(&options.dataDir, "data-dir", dataDir, "directory for the control plane and the logs")
	options.assets.AddFlags(flags)
	return command
}

func (o *demoOptions) check() error {
	const most = 5000
	if o.replicas < 1 || o.replicas > most {
		return cli.UsageErrorf("--replicas is %d, want 1 to %d", o.replicas, most)
	}
	if _, known := stories()[o.story]; !known || o.story == awsStoryName {
		return cli.UsageErrorf("--story is %q, want %s", o.story, storyNames())
	}
	switch {
	case o.cloud != "" && o.cloud != "kwok" && o.cloud != "aws":
		return cli.UsageErrorf("--cloud-provider is %q, want kwok or aws", o.cloud)
	case o.story == capacityStoryName && o.cloud != "aws":
		return cli.UsageErrorf("--story %s requires --cloud-provider aws", o.story)
	case o.cloud == "aws" && o.story == consolidationStoryName:
		return cli.UsageErrorf("--story %s requires --cloud-provider kwok", o.story)
	case o.cloud == "aws" && o.keep:
		return cli.UsageErrorf("--keep requires --cloud-provider kwok, because the simulated AWS ends with the demo")
	}
	if o.keep && o.story != scaleStoryName {
		return cli.UsageErrorf("--keep requires --story %s", scaleStoryName)
	}
	if o.dataDir == "" {
		return cli.UsageErrorf("--data-dir is empty, want a directory")
	}
	var err error
	if o.dataDir, err = filepath.Abs(o.dataDir); err != nil {
		return cli.UsageErrorf("--data-dir: %w", err)
	}
	if o.cloud == "aws" && o.story == scaleStoryName {
		o.story = awsStoryName
	}
	return nil
}

// demo is one run of the demo.
type demo struct {
	demoOptions
	out      io.Writer
	progress *progress

	cluster    *demoCluster
	controller *childController
	history    *history
	objects    *demoObjects
	aws        *demoAWS  // nil with kwok
	scaled     time.Time // time of the last scale command
	planned    float64   // story consolidation: the planned final cost of the fleet, USD per hour
}

// run executes the steps, and stops what it started unless it is to be kept.
func (d *demo) run(ctx context.Context) (err error) {
	defer d.progress.clear()
	defer func() {
		if err != nil || !d.keep {
			d.stop()
		}
	}()
	tell := stories()[d.story]
	fmt.Fprintf(d.out, "%s on Kubernetes with simulated nodes. Logs: %s\n\n", cmp.Or(tell.opening, table.Plural(d.replicas, "pod")),
		filepath.Join(d.dataDir, "logs"))
	for _, step := range []struct {
		name string
		do   func(context.Context) (string, error)
	}{
		{"Kubernetes", d.startCluster},
		{"CRDs", d.install},
		{"simulated AWS", d.before(tell)},
		{"controller", d.startController},
		{tell.step, d.apply},
	} {
		if step.do == nil {
			continue
		}
		began := time.Now()
		what, err := step.do(ctx)
		if err != nil {
			return d.failed(step.name, err)
		}
		d.progress.clear()
		fmt.Fprintf(d.out, "  %-16s%6.1f s   %s\n", step.name, time.Since(began).Seconds(), what)
	}
	if err := tell.play(d, ctx); err != nil {
		return d.failed(d.story, err)
	}
	if d.keep {
		return nil
	}
	d.stop()
	fmt.Fprintln(d.out, "\nAll processes are stopped.")
	return nil
}

// before returns the story's own step before the controller starts, nil if it has none.
func (d *demo) before(tell story) func(context.Context) (string, error) {
	if tell.before == nil {
		return nil
	}
	return func(ctx context.Context) (string, error) { return tell.before(d, ctx) }
}

// failed returns an error with the step and the log to read.
func (d *demo) failed(step string, err error) error {
	if cli.ExitCode(err) == 2 {
		return err
	}
	log := filepath.Join(d.dataDir, "logs")
	var dead *sandbox.DeadError
	switch {
	case errors.As(err, &dead):
		return fmt.Errorf("demo: %s: %w", step, err)
	case d.controller != nil:
		log = d.controller.log
	}
	return fmt.Errorf("demo: %s: %w; see %s", step, err, log)
}

// stop ends all started processes, the controller first. A second Ctrl-C ends the program, and then the kernel ends
// its children.
func (d *demo) stop() {
	if d.controller != nil {
		d.progress.show("stopping the controller")
		d.controller.stop()
		d.controller = nil
	}
	if d.aws != nil {
		d.aws.stop()
		d.aws = nil
	}
	if d.cluster != nil {
		d.progress.show("stopping Kubernetes")
		d.cluster.stop()
		d.cluster = nil
		_ = os.Remove(d.keepsake())
	}
	d.progress.clear()
}

func (d *demo) scaleUp(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nScale up: Deployment %s, 0 -> %s of 100m CPU and 256Mi\n\n", demoDeployment, table.Plural(d.replicas, "replica"))
	if err := d.scale(ctx, d.replicas); err != nil {
		return err
	}
	patience := 2*time.Minute + time.Duration(d.replicas)*100*time.Millisecond
	err := d.await(ctx, patience, table.Plural(d.replicas, "pod")+" to run", func() (bool, string) {
		h := d.history
		return h.count(podRunning) >= d.replicas && h.count(claimInitialized) >= h.count(claimCreated),
			fmt.Sprintf("%s pending, %d bound, %d running; %s", table.Plural(h.count(podPending), "pod"), h.count(podBound),
				h.count(podRunning), table.Plural(h.count(claimCreated), "claim"))
	})
	if err != nil {
		return err
	}
	passes, err := readPasses(d.controller.log)
	if err != nil {
		return err
	}
	d.printTimeline(upStages(d.history, passes))
	d.printWork(passes)
	_, err = d.printCost("Cost")
	return err
}

// leaving describes the progress of removing the nodes.
func leaving(pods, cordoned, nodes int) string {
	switch {
	case pods > 0:
		return table.Plural(pods, "pod") + " left"
	case cordoned == 0:
		return "no pods left, waiting for consolidateAfter (30s)"
	}
	return table.Plural(nodes, "node") + " left, " + table.Plural(cordoned, "node") + " cordoned"
}

func (d *demo) scaleDown(ctx context.Context) error {
	fmt.Fprintf(d.out, "\nScale down: Deployment %s, %d -> 0 replicas; consolidateAfter is 30s\n\n", demoDeployment, d.replicas)
	if err := d.scale(ctx, 0); err != nil {
		return err
	}
	claims := len(d.claimsNow())
	err := d.await(ctx, 3*time.Minute, table.Plural(claims, "node")+" to be removed", func() (bool, string) {
		pods, remaining, nodes := d.history.present()
		return len(pods) == 0 && len(remaining) == 0 && len(nodes) == 0,
			leaving(len(pods), d.history.since(nodeCordoned, d.scaled).count, len(nodes))
	})
	if err != nil {
		return err
	}
	var rows []timelineRow
	for _, s := range []stage{podGone, nodeCordoned, claimDeleting, nodeGone, claimGone} {
		rows = append(rows, timelineRow{string(s), d.history.since(s, d.scaled)})
	}
	d.printTimeline(rows)
	fmt.Fprintf(d.out, "\n  The last node was removed %.1f s after the scale command.\n",
		d.history.span(nodeGone).last.Sub(d.scaled).Seconds())
	return nil
}
