package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/internal/cli"
)

// newExplainCommand returns the verb that explains what happens to an object of a live cluster. Objects are named as
// in kubectl: by kind in singular, plural or short, and as KIND/NAME too.
func newExplainCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "explain",
		Short: "Say what becomes of a pod, a node or a pool, and why",
		// An argument that is not a kind is a name, or an error of its own. Its flags are those of the kind.
		DisableFlagParsing: true,
		RunE:               explainNamed,
	}
	command.AddCommand(newExplainPodCommand(), newExplainNodeCommand(), newExplainPoolCommand())
	return command
}

// explainNamed runs the command of the kind in KIND/NAME.
func explainNamed(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 || slices.Contains(arguments, "-h") || slices.Contains(arguments, "--help") {
		return command.Help()
	}
	for i, argument := range arguments {
		kind, name, both := strings.Cut(argument, "/")
		at := slices.IndexFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == kind || c.HasAlias(kind) })
		if !both || at < 0 {
			continue
		}
		of := command.Commands()[at]
		of.SetContext(command.Context())
		if err := of.ParseFlags(slices.Concat(arguments[:i], []string{name}, arguments[i+1:])); err != nil {
			return command.Root().FlagErrorFunc()(of, err)
		}
		if err := of.Args(of, of.Flags().Args()); err != nil {
			return err
		}
		return of.RunE(of, of.Flags().Args())
	}
	what := arguments[0]
	if strings.HasPrefix(what, "-") {
		return cli.UsageErrorf("nothing to explain: want pod, node or pool, and a name")
	}
	kind, _, _ := strings.Cut(what, "/")
	return cli.UsageErrorf("%q is not known, want pod, node or pool%s", kind, cli.DidYouMean(kind, kindsOf(command)))
}

// kindsOf returns all names of the kinds that can be explained.
func kindsOf(command *cobra.Command) []string {
	var names []string
	for _, c := range command.Commands() {
		names = append(append(names, c.Name()), c.Aliases...)
	}
	return names
}

// oneName accepts exactly one argument.
func oneName(want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return cli.UsageErrorf("%d arguments, want one: %s", len(arguments), want)
		}
		return nil
	}
}

// bareName returns a name without the kind that `kubectl get -o name` prints before it.
func bareName(command *cobra.Command, name string) string {
	kind, rest, both := strings.Cut(name, "/")
	kind, _, _ = strings.Cut(kind, ".")
	if both && (kind == command.Name() || command.HasAlias(kind)) {
		return rest
	}
	return name
}

// mostNamed is the maximum number of pods that an error names.
const mostNamed = 3

// podsLike completes the error that a pod does not exist: with pods of a workload of the name, a pod of the name in
// another namespace, or a pod with a similar name.
func (o *objects) podsLike(name string) string {
	namespace, bare, _ := strings.Cut(name, "/")
	var ofWorkload, elsewhere, near []string
	for _, p := range o.pods {
		switch pod := p.object; {
		case pod.Namespace == namespace && strings.HasPrefix(pod.Name, bare+"-"):
			ofWorkload = append(ofWorkload, pod.Name)
		case pod.Name == bare:
			elsewhere = append(elsewhere, key(pod))
		case pod.Namespace == namespace:
			near = append(near, pod.Name)
		}
	}
	for _, list := range [][]string{ofWorkload, elsewhere, near} {
		slices.Sort(list)
	}
	switch {
	case len(ofWorkload) > 0:
		return "; pods whose names begin so: " + fewNames(ofWorkload)
	case len(elsewhere) > 0:
		return "; there is " + fewNames(elsewhere)
	}
	return cli.DidYouMean(bare, near)
}

func fewNames(names []string) string {
	if len(names) <= mostNamed {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:mostNamed], ", ") + " and " + cli.Plural(len(names)-mostNamed, "other")
}
