package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// pageFlags holds the flags of the verb.
type pageFlags struct {
	live          offline.Cluster
	instanceTypes string
	policy        offline.Policy
	from          []string
	port          int
	noBrowser     bool
	interval      time.Duration
	cost          billFlags
}

// newWebCommand returns the verb that serves the page.
func newWebCommand() *cobra.Command {
	var f pageFlags
	command := &cobra.Command{
		Use:   "web",
		Short: "Show a cluster or a capture as pictures and tables in a browser",
		Long: `Serves a page on 127.0.0.1, prints its address, and opens it: the fleet with its pods, the plan step by step, why pods are
pending, what keeps nodes although they could be removed and what that costs, the cost by namespace, workload and label
of the pods and by pool, zone and type, and what-ifs with changed pools, prices, zones and pods. Nothing is changed in
the cluster.

The cluster is read with the user's own permissions, as "top" does, while the page is open. With -f the page shows a
capture, or manifests, without any cluster.

The address contains a token that works once; after that, the address for a further browser is printed. The program ends
with Ctrl-C.`,
		Example: "  kubectl karpenter web\n  kubectl karpenter web -f capture.json --no-browser\n" +
			"  kubectl get nodepools,nodeclaims,nodes,pods,pdb -A -o json | kubectl karpenter web -f -",
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	f.addFlags(command.Flags())
	return command
}

func (f *pageFlags) addFlags(flags *pflag.FlagSet) {
	f.addSourceFlags(flags)
	flags.IntVar(&f.port, "port", 0, "port of 127.0.0.1 (default: any free one)")
	flags.BoolVar(&f.noBrowser, "no-browser", false, "only print the address")
	flags.DurationVar(&f.interval, "interval", 10*time.Second, "least time between two readings of the cluster, 1s or more")
}

// addSourceFlags adds the flags that select what is read, and the options of decisions.
func (f *pageFlags) addSourceFlags(flags *pflag.FlagSet) {
	addClusterFlags(flags, &f.live)
	addFilesFlag(flags, &f.from, "capture, or file or folder of manifests, to show in place of a cluster")
	flags.StringVar(&f.instanceTypes, "instance-types", "", "file of instance types and prices (default: those of the cloud provider)")
	addPolicyFlags(flags, &f.policy)
	addDisruptFlags(flags, &f.policy)
	f.cost.addLabel(flags)
}

func (f *pageFlags) check() error {
	switch {
	case f.port < 0 || f.port > 65535:
		return cli.UsageErrorf("--port is %d, want 1 to 65535, or 0 for any", f.port)
	case f.interval < leastInterval:
		return cli.UsageErrorf("--interval is %s, want 1s or more", f.interval)
	}
	_, err := f.cost.grouping()
	return errors.Join(err, f.live.Check(), f.policy.Check())
}

func (f *pageFlags) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := web.Options{Live: len(f.from) == 0, Interval: f.interval, Source: f.source(),
		Command: f.reads(), Used: func(address string) { fmt.Fprintf(progress, "for a further browser: %s\n", address) }}
	if options.Live {
		if _, err := f.live.Config(); err != nil {
			return err
		}
		options.Read = f.overview(nil)
	} else {
		// Files are read before the address is printed: an unreadable one is an error of the command line.
		overview, err := f.overview(in)(ctx)
		if err != nil {
			return err
		}
		if err := unusable(overview, progress); err != nil {
			return err
		}
		options.Read = func(context.Context) (*offline.Overview, error) { return overview, nil }
	}
	server := web.New(options)
	listener, address, err := server.Listen(f.port)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, address)
	if !f.noBrowser && isTerminal(out) {
		if err := openBrowser(ctx, address); err != nil {
			fmt.Fprintf(progress, "no browser could be opened (%v): open the address yourself\n", err)
		}
	}
	return server.Serve(ctx, listener)
}

// source returns what is read, in words.
func (f *pageFlags) source() string {
	return cmp.Or(strings.Join(f.from, ", "), f.live.Name(), "the cluster")
}

// reads returns the flags by which other verbs read the same.
func (f *pageFlags) reads() []string {
	var flags []string
	for _, file := range f.from {
		flags = append(flags, "-f", file)
	}
	for _, set := range [][2]string{{"--kubeconfig", f.live.Kubeconfig}, {"--context", f.live.Context},
		{"--cloud-provider", f.live.CloudProvider}, {"--instance-types", f.instanceTypes}} {
		if set[1] != "" {
			flags = append(flags, set[0], set[1])
		}
	}
	return flags
}

// overview returns a function that reads the cluster, or the files.
func (f *pageFlags) overview(in io.Reader) func(context.Context) (*offline.Overview, error) {
	return func(ctx context.Context) (*offline.Overview, error) {
		source := offline.Source{Paths: f.from, Stdin: in, Live: len(f.from) == 0, Cluster: &f.live, InstanceTypes: f.instanceTypes}
		by, err := f.cost.grouping()
		if err != nil {
			return nil, err
		}
		f.live.Usage = f.cost.usage
		w, err := source.Read(ctx, f.policy)
		if err != nil {
			return nil, err
		}
		o := w.Overview(&f.policy)
		if by != nil {
			o.CostBy = *by
		}
		return o, nil
	}
}

// unusable prints what could not be read. It returns an error if there is nothing else.
func unusable(o *offline.Overview, progress io.Writer) error {
	problems := o.Problems()
	if len(problems) > 0 && o.Empty() {
		return unreadable(problems, progress)
	}
	for _, problem := range problems {
		fmt.Fprintf(progress, "%s: %s\n", plugin, offline.OneLine(problem))
	}
	return nil
}

// openBrowser opens an address with the program that the system has for that.
func openBrowser(ctx context.Context, address string) error {
	words := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		words = []string{"open"}
	case "windows":
		words = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	command := exec.CommandContext(ctx, words[0], append(words[1:], address)...)
	if err := command.Start(); err != nil {
		return err
	}
	go command.Wait() // its exit code says nothing about the page
	return nil
}
