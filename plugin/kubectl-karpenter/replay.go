package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// newReplayCommand returns the verb that repeats a captured decision.
func newReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay FILE",
		Short: "Repeat a captured decision and compare the answers",
		Long: `Reads a capture, as written by kubectl karpenter simulate --capture, decides on its input with its options, and compares.
The exit code is 0 when the answer is the same byte for byte, apart from the statistics, and 1 when it is not. A capture
of the controller has no answer: replay shows the one for its input.`,
		Args: func(_ *cobra.Command, arguments []string) error {
			if len(arguments) != 1 {
				return cli.UsageErrorf("%d arguments, want one: the file of the capture", len(arguments))
			}
			return nil
		},
		RunE: func(command *cobra.Command, arguments []string) error { return replay(command, arguments[0]) },
	}
}

func replay(command *cobra.Command, path string) error {
	r, err := offline.Replay(path)
	if err != nil {
		return err
	}
	program := command.Root().CommandPath()
	for _, problem := range r.Problems {
		fmt.Fprintf(command.ErrOrStderr(), "%s: %s\n", program, offline.OneLine(problem))
	}
	if len(r.Differs) > 0 {
		return fmt.Errorf("%s: the answer has changed: now %s; before: %s; differences: %s; %s simulate -f %s%s shows it",
			path, r.Now, r.Before, strings.Join(r.Differs, ", "), program, path, r.Flags)
	}
	same := "the same answer"
	if r.Before == "" {
		same = "no answer is recorded"
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%s: %s\n", same, r.Now)
	return err
}
