package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// newSandboxCommand returns the verb that runs a Kubernetes control plane on this machine.
func newSandboxCommand() *cobra.Command {
	group := &cobra.Command{
		Use:   "sandbox",
		Short: "Run a real Kubernetes control plane on this machine, with simulated kubelets",
		Long: `Run etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok's
simulated kubelets on the loopback address of this machine.

The data directory identifies the sandbox: two directories are two sandboxes. It
holds certificates, ports, etcd's data, the kubeconfig and the logs
(logs/<component>.log); "down" keeps it, and the next "up" goes on from there. A
Node with the annotation kwok.x-k8s.io/node=fake becomes Ready and runs pods.`,
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	group.AddCommand(newSandboxUp(), newSandboxDown(), newSandboxStatus(), newSandboxKubeconfig(), newSandboxAssets(), newSandboxSupervise(), newSandboxAWS())
	return group
}

func dataDirFlag(command *cobra.Command, dataDir *string) {
	command.Flags().StringVar(dataDir, "data-dir", defaultDataDir(), "directory that is the sandbox")
}

// assetsFlags adds the flags that select the control plane's executables.
func assetsFlags(command *cobra.Command, options *sandbox.AssetsOptions) {
	command.Flags().StringVar(&options.Folder, "sandbox-assets", "",
		"folder with one executable per component; by default they are built from the source tree, or karpenter-sandbox on the PATH is used")
	command.Flags().StringVar(&options.KubernetesVersion, "kubernetes-version", "",
		"minor version of Kubernetes to build and run, such as 1.33; by default that of the source tree")
}

func defaultDataDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "karpenter-go", "sandboxes", "default")
}

func newSandboxUp() *cobra.Command {
	var options sandbox.Options
	var assets sandbox.AssetsOptions
	var foreground bool
	command := &cobra.Command{
		Use:   "up",
		Short: "Start the sandbox and return when it is ready",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if options.ReadyTimeout <= 0 {
				return cli.UsageErrorf("--timeout is %s, want a positive time such as 2m", options.ReadyTimeout)
			}
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			options.Progress = progressTo(command.ErrOrStderr())
			return sandboxUp(ctx, command.OutOrStdout(), options, assets, foreground)
		},
	}
	dataDirFlag(command, &options.DataDir)
	assetsFlags(command, &assets)
	command.Flags().BoolVar(&foreground, "foreground", false, "stay until SIGINT and stop the sandbox then")
	command.Flags().DurationVar(&options.ReadyTimeout, "timeout", 2*time.Minute, "how long each component may take to become ready")
	return command
}

func sandboxUp(ctx context.Context, out io.Writer, options sandbox.Options, wanted sandbox.AssetsOptions, foreground bool) error {
	// A running sandbox needs no executables, and building them may take minutes.
	if status, err := sandbox.ReadStatus(options.DataDir); err == nil && status.Phase == sandbox.Running {
		return alreadyUp(out, options.DataDir, status)
	}
	if err := sandbox.CheckDataDir(options.DataDir); err != nil {
		return err
	}
	wanted.Progress = options.Progress
	assets, err := findAssets(ctx, wanted)
	if err != nil {
		return err
	}
	options.Assets = assets
	var running *sandbox.RunningError
	if foreground {
		err := sandbox.Run(ctx, options, func(s *sandbox.Sandbox) {
			if err := leadHereBy(ctx, s.Kubeconfig()); err != nil {
				options.Progress(err.Error())
			}
			describeSandbox(out, s.Status())
		})
		if errors.As(err, &running) {
			status, _ := sandbox.ReadStatus(options.DataDir)
			return alreadyUp(out, options.DataDir, status)
		}
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding this program, to run the supervisor: %w", err)
	}
	status, err := sandbox.Up(ctx, options, []string{self, "sandbox", "supervise", "--data-dir", options.DataDir})
	if errors.As(err, &running) {
		return alreadyUp(out, options.DataDir, status)
	}
	if err != nil {
		return err
	}
	if err := leadHereBy(ctx, status.Kubeconfig); err != nil {
		return err
	}
	describeSandbox(out, status)
	return nil
}

func alreadyUp(out io.Writer, dataDir string, status sandbox.Status) error {
	fmt.Fprintf(out, "the sandbox in %s is running already\n", dataDir)
	describeSandbox(out, status)
	return nil
}

func describeSandbox(out io.Writer, status sandbox.Status) {
	fmt.Fprintf(out, "Kubernetes is at %s\n", status.Server)
	fmt.Fprintf(out, "kubectl: %s\n", strings.Join(status.Kubectl(), " "))
}

func newSandboxDown() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:   "down",
		Short: "Stop the sandbox; its data stays",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ran, err := sandbox.Down(command.Context(), dataDir)
			if err != nil {
				return err
			}
			if ran {
				fmt.Fprintf(command.OutOrStdout(), "stopped the sandbox in %s\n", dataDir)
			} else {
				fmt.Fprintf(command.OutOrStdout(), "no sandbox is running in %s\n", dataDir)
			}
			return nil
		},
	}
	dataDirFlag(command, &dataDir)
	return command
}

func newSandboxStatus() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:   "status",
		Short: "Tell whether the sandbox runs (exit code 0) or not (1), and why",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			status, err := sandbox.ReadStatus(dataDir)
			if err != nil {
				return err
			}
			return printStatus(command.OutOrStdout(), dataDir, status)
		},
	}
	dataDirFlag(command, &dataDir)
	return command
}

func printStatus(out io.Writer, dataDir string, status sandbox.Status) error {
	fmt.Fprintf(out, "sandbox %s: %s\n", dataDir, status.Phase)
	switch {
	case status.Phase == sandbox.Running:
	case status.Message != "":
		return errors.New(status.Message)
	case status.Phase == sandbox.Starting || status.Phase == sandbox.Stopping:
		return errors.New("it is on its way")
	default:
		return fmt.Errorf("`karpenter sandbox up --data-dir %s` starts it", dataDir)
	}
	if status.Message != "" {
		fmt.Fprintln(out, status.Message)
	}
	describeSandbox(out, status)
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "COMPONENT\tPROCESS\tPORT\tLOG")
	for _, component := range status.Components {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", component.Name, component.Process, component.Port, component.Log)
	}
	return table.Flush()
}

func newSandboxKubeconfig() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the administrator's kubeconfig of the sandbox",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			path, err := sandbox.Kubeconfig(dataDir)
			if err != nil {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
			}
			_, err = command.OutOrStdout().Write(content)
			return err
		},
	}
	dataDirFlag(command, &dataDir)
	return command
}

// newSandboxAssets returns the verb that prints the folder that tests use as KUBEBUILDER_ASSETS. A Makefile can
// thereby build it and show the progress before tests with a timeout.
func newSandboxAssets() *cobra.Command {
	var assets sandbox.AssetsOptions
	command := &cobra.Command{
		Use:   "assets",
		Short: "Find or build the control plane's executables and print their folder",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			assets.Progress = progressTo(command.ErrOrStderr())
			folder, err := findAssets(ctx, assets)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), folder)
			return nil
		},
	}
	assetsFlags(command, &assets)
	return command
}

// newSandboxSupervise returns the verb that "up" runs in the background.
func newSandboxSupervise() *cobra.Command {
	var dataDir string
	command := &cobra.Command{
		Use:    "supervise",
		Short:  "Run a sandbox that `up` prepared",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE:   func(*cobra.Command, []string) error { return sandbox.Supervise(dataDir) },
	}
	dataDirFlag(command, &dataDir)
	return command
}

// findAssets returns the folder of executables. A given folder without some of them, and an unknown version, are
// usage errors.
func findAssets(ctx context.Context, options sandbox.AssetsOptions) (string, error) {
	found, err := sandbox.Assets(ctx, options)
	var version *sandbox.VersionError
	if err != nil && (options.Folder != "" || errors.As(err, &version)) {
		return "", cli.UsageErrorf("%w", err)
	}
	return found, err
}

func progressTo(out io.Writer) func(string) {
	return func(message string) { fmt.Fprintln(out, message) }
}
