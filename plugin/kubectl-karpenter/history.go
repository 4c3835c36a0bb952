package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/history"
	"github.com/karpenter-go/karpenter/plugin/history/podlog"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// past holds the flags of the verb history.
type past struct {
	files            []string
	cluster          bool
	connection       offline.Connection
	since, until, by string
	filter, output   string
	in               io.Reader
	out, progress    io.Writer
}

// newHistoryCommand returns the verb that says what happened, from the controller's log.
func newHistoryCommand() *cobra.Command {
	p := past{}
	command := &cobra.Command{
		Use:   "history -f FILE|- ... | --live",
		Short: "Show what happened to nodes and pods, from the controller's log",
		Long: `Reads the log of the controller, of this project or of upstream's Karpenter, and prints the nodes: when and for which
pods each was launched, what it cost, and why and by which command it left. With --by hour: what each hour cost, and what
consolidation saved. Times are UTC. Nothing is stored or changed.

The log comes from files, from standard input, or with --live from the pods of the controller. Several files may be of
one log or of several replicas, in any order.`,
		Example: "  kubectl logs -n karpenter deploy/karpenter | kubectl karpenter history -f -\n" +
			"  kubectl karpenter history --live --since 24h\n  kubectl karpenter history --live --by hour\n" +
			"  kubectl karpenter history node default-x7k2p -f karpenter.log",
		Args: cli.NoArguments,
		RunE: p.runs(func(v *history.View, _ string, width int) (outcome, error) { return p.overview(v, width) }),
	}
	p.addFlags(command)
	command.Flags().StringVar(&p.by, "by", "", "hour or day: what each cost, in place of the nodes")
	command.AddCommand(newPastCommand("node NAME", "Show what happened to a node, by its name or that of its NodeClaim",
		"  kubectl karpenter history node default-x7k2p --live", nodeOfPast),
		newPastCommand("pod NAMESPACE/NAME", "Show which nodes were launched for a pod, and which it was evicted from",
			"  kubectl karpenter history pod shop/web-0 -f karpenter.log", podOfPast),
		newPastCommand("commands", "Show the commands that removed nodes, and what they saved",
			"  kubectl karpenter history commands --live -o json",
			func(v *history.View, _ string, width int) (outcome, error) { return fitted{v.Commands(), width}, nil }))
	return command
}

// newPastCommand returns a command about a part of the past. The first word of use is its name; a second one is what it
// is about.
func newPastCommand(use, short, example string, answer func(*history.View, string, int) (outcome, error)) *cobra.Command {
	p := past{}
	command := &cobra.Command{Use: use + " -f FILE|- ... | --live", Short: short, Example: example,
		Long: short + ". The log is read as for `kubectl karpenter history`.", RunE: p.runs(answer), Args: cli.NoArguments}
	if _, want, is := strings.Cut(use, " "); is {
		command.Args = oneName(want)
	}
	switch command.Name() {
	case "node":
		command.ValidArgsFunction = completeName("Node", "NodeClaim")
	case "pod":
		command.ValidArgsFunction = completePod
	}
	p.addFlags(command)
	return command
}

func (p *past) addFlags(command *cobra.Command) {
	flags := command.Flags()
	addConnectionFlags(flags, &p.connection)
	addNamespaceFlag(flags, &p.connection, "namespace of the controller's pods, for --live (default: all)")
	flags.StringArrayVarP(&p.files, "filename", "f", nil, "file with the controller's log; - for standard input; may be repeated")
	flags.BoolVar(&p.cluster, "live", false, "read the log of the controller's pods in the cluster that the kubeconfig names")
	flags.StringVar(&p.since, "since", "",
		"begin of the answer: a duration before the end of the log, such as 24h, or a time such as 2026-01-31T12:00:00Z")
	flags.StringVar(&p.until, "until", "", "end of the answer, as for --since")
	flags.StringVar(&p.filter, "filter", "", "only nodes and commands with this text in a name, type, zone, capacity type, pool or reason")
	flags.StringVarP(&p.output, "output", "o", formatText, orList(formats))
}

// fitted adapts an answer to the printer.
type fitted struct {
	answer interface {
		Text(width int) string
		Names() []string
	}
	columns int
}

func (f fitted) Text() string                 { return f.answer.Text(f.columns) }
func (f fitted) Names() []string              { return f.answer.Names() }
func (f fitted) MarshalJSON() ([]byte, error) { return json.Marshal(f.answer) }

func (p *past) overview(v *history.View, width int) (outcome, error) {
	switch p.by {
	case "":
		return fitted{v.Nodes(), width}, nil
	case "hour":
		return fitted{v.Hours(time.Hour), width}, nil
	case "day":
		return fitted{v.Hours(24 * time.Hour), width}, nil
	}
	return nil, cli.UsageErrorf("--by is %q, want hour or day%s", p.by, cli.DidYouMean(p.by, []string{"hour", "day"}))
}

func nodeOfPast(v *history.View, name string, width int) (outcome, error) {
	_, bare, qualified := strings.Cut(name, "/")
	if qualified {
		name = bare
	}
	answer, err := v.Node(name)
	if err != nil {
		return nil, meant(err, name)
	}
	return fitted{answer, width}, nil
}

func podOfPast(v *history.View, name string, width int) (outcome, error) {
	if !strings.Contains(name, "/") {
		return nil, cli.UsageErrorf("pod %s: want NAMESPACE/NAME", name)
	}
	answer, err := v.Pod(name)
	if err != nil {
		return nil, meant(err, name)
	}
	return fitted{answer, width}, nil
}

// meant adds a name that is similar to one that the log lacks.
func meant(err error, name string) error {
	var missing *history.MissingError
	if errors.As(err, &missing) {
		return fmt.Errorf("%w%s", err, cli.DidYouMean(name, missing.Known))
	}
	return err
}

// runs returns what runs a command: it reads the log and prints the answer.
func (p *past) runs(answer func(*history.View, string, int) (outcome, error)) func(*cobra.Command, []string) error {
	return func(command *cobra.Command, arguments []string) error {
		p.in, p.out, p.progress = command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr()
		if err := checkOutput(p.output, formats); err != nil {
			return err
		}
		if p.cluster == (len(p.files) > 0) {
			return cli.UsageErrorf("want one of -f, to read files, and --live, to read the log of the controller's pods")
		}
		log, err := p.read(command.Context())
		if err != nil {
			return err
		}
		query, err := p.query(log)
		if err != nil {
			return err
		}
		name := ""
		if len(arguments) > 0 {
			name = arguments[0]
		}
		result, err := answer(log.View(query), name, widthOf(p.output, p.out))
		if err != nil {
			return err
		}
		return printOutcome(result, p.output, p.out)
	}
}

// read reads the log.
func (p *past) read(ctx context.Context) (*history.Log, error) {
	if !p.cluster {
		return readLogs("-f", p.files, p.in, p.progress)
	}
	config, err := p.connection.Config()
	if err != nil {
		return nil, err
	}
	log := &history.Log{}
	remarks, err := podlog.Read(ctx, config, p.connection.Namespace, log.Read)
	if apierrors.IsForbidden(err) {
		return nil, fmt.Errorf("%w; it takes the verbs list of pods and get of pods/log in the controller's namespace (with -n, only there)", err)
	}
	if err != nil {
		return nil, err
	}
	for _, remark := range remarks {
		fmt.Fprintf(p.progress, "%s: %v\n", plugin, remark)
	}
	tellUnread(log, p.progress)
	return log, nil
}

// readLogs reads files, - for standard input, as one log. The flag is the one that names them.
func readLogs(flag string, files []string, in io.Reader, progress io.Writer) (*history.Log, error) {
	log := &history.Log{}
	for _, path := range files {
		if err := readLog(log, path, in); err != nil {
			return nil, cli.UsageErrorf("%s: %w", flag, err)
		}
	}
	if log.From.IsZero() {
		example := ""
		if log.Unread > 0 {
			example = fmt.Sprintf("; the first line is %q", shortened(log.Example))
		}
		return nil, cli.UsageErrorf("%s: no line of a log, want JSON or console lines of the controller%s", strings.Join(files, ", "), example)
	}
	tellUnread(log, progress)
	if log.Events == 0 {
		fmt.Fprintf(progress, "%s: %s: no line is about a node, in a form of the controller that is known\n", plugin, strings.Join(files, ", "))
	}
	return log, nil
}

func readLog(log *history.Log, path string, in io.Reader) error {
	if path == "-" {
		return log.Read(in)
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	err = log.Read(file)
	return errors.Join(err, file.Close())
}

// tellUnread says how many lines were not read, and shows one.
func tellUnread(log *history.Log, progress io.Writer) {
	if log.Unread > 0 {
		fmt.Fprintf(progress, "%s: %d of %d lines not read, the first: %q\n", plugin, log.Unread, log.Lines, shortened(log.Example))
	}
}

func shortened(text string) string {
	const most = 100
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// query returns the part of the log that the flags select.
func (p *past) query(log *history.Log) (history.Query, error) {
	q := history.Query{Filter: p.filter}
	for _, f := range []struct {
		name, text string
		to         *time.Time
	}{{"since", p.since, &q.Since}, {"until", p.until, &q.Until}} {
		if f.text == "" {
			continue
		}
		if d, err := time.ParseDuration(f.text); err == nil && d >= 0 {
			*f.to = log.Until.Add(-d)
		} else if at, err := time.Parse(time.RFC3339, f.text); err == nil {
			*f.to = at.UTC()
		} else {
			return q, cli.UsageErrorf("--%s is %q, want a duration such as 24h, or a time such as 2026-01-31T12:00:00Z", f.name, f.text)
		}
	}
	if q.Since.After(log.Until) {
		return q, cli.UsageErrorf("--since %s is after the end of the log, %s", p.since, log.Until.Format(time.RFC3339))
	}
	if !q.Until.IsZero() && q.Until.Before(q.Since) {
		return q, cli.UsageErrorf("--until %s is before --since %s", p.until, p.since)
	}
	return q, nil
}
