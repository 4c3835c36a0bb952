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
	"k8s.io/client-go/tools/clientcmd"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

func dataDirFlag(command *cobra.Command, dataDir *string) {
	command.Flags().StringVar(dataDir, "data-dir", defaultDataDir(), "directory that is the sandbox")
}

func defaultDataDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "karpenter-go", "sandboxes", "default")
}

func newUp() *cobra.Command {
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
	assets.AddFlags(command.Flags())
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
	assets, err := sandbox.Assets(ctx, wanted)
	if err != nil {
		return err
	}
	options.Assets = assets
	var running *sandbox.RunningError
	if foreground {
		err := sandbox.Run(ctx, options, func(s *sandbox.Sandbox) {
			if err := leadHere(ctx, s.Kubeconfig()); err != nil {
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
	status, err := sandbox.Up(ctx, options, []string{self, "supervise", "--data-dir", options.DataDir})
	if errors.As(err, &running) {
		return alreadyUp(out, options.DataDir, status)
	}
	if err != nil {
		return err
	}
	if err := leadHere(ctx, status.Kubeconfig); err != nil {
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

func newDown() *cobra.Command {
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

func newStatus() *cobra.Command {
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
		return fmt.Errorf("`karpenter-sandbox up --data-dir %s` starts it", dataDir)
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

func newKubeconfig() *cobra.Command {
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

// newAssets returns the verb that prints the folder that tests use as KUBEBUILDER_ASSETS. A Makefile can
// thereby build it and show the progress before tests with a timeout.
func newAssets() *cobra.Command {
	var assets sandbox.AssetsOptions
	command := &cobra.Command{
		Use:   "assets",
		Short: "Find, download or build the control plane's executables and print their folder",
		Args:  cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(command.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			assets.Progress = progressTo(command.ErrOrStderr())
			folder, err := sandbox.Assets(ctx, assets)
			if err != nil {
				return err
			}
			fmt.Fprintln(command.OutOrStdout(), folder)
			return nil
		},
	}
	assets.AddFlags(command.Flags())
	return command
}

// newPin returns the verb for maintainers that writes the checksums of a release into the source tree, from where they are
// published.
func newPin() *cobra.Command {
	var assets sandbox.AssetsOptions
	command := &cobra.Command{
		Use:    "pin",
		Short:  "Write the published checksums of a minor version's release into the source tree",
		Hidden: true,
		Args:   cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			path, text, err := sandbox.Pin(command.Context(), assets)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				return fmt.Errorf("writing the checksums: %w", err)
			}
			fmt.Fprintln(command.OutOrStdout(), path)
			return nil
		},
	}
	assets.AddFlags(command.Flags())
	return command
}

// newSupervise returns the verb that "up" runs in the background.
func newSupervise() *cobra.Command {
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

// leadHere creates the Service by which the API server of the sandbox reaches a controller on this machine.
func leadHere(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("reading the sandbox's kubeconfig: %w", err)
	}
	return sandbox.CreateLocalService(ctx, config, service)
}

func progressTo(out io.Writer) func(string) {
	return func(message string) { fmt.Fprintln(out, message) }
}
