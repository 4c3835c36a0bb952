package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// completionPatience is how long completion waits for the cluster. A shell is blocked meanwhile.
const completionPatience = 3 * time.Second

// fileFlags are the flags whose values are files or folders.
var fileFlags = []string{
	"filename", "instance-types", "capture", "kubeconfig", "certificate-authority", "client-certificate", "client-key",
	"report", "values", "cluster-ca-bundle", "from", "log",
}

// enumerations are the values of flags that accept only certain ones, by the flag or by the verb and the flag.
var enumerations = map[string][]string{
	"history by":        {"day", "hour"},
	"top by":            bill.Groupings(),
	"cloud-provider":    {"aws", "kwok"},
	"min-values-policy": {"BestEffort", "Strict"},
	"preference-policy": {"Ignore", "Respect"},
	"sort":              top.Orders(),
}

// sameFormats are the verbs that have, as their subcommands, the formats of all verbs.
var sameFormats = []string{"explain", "history", "top"}

// addCompletion makes the shell complete the values of flags, and names of objects.
func addCompletion(root *cobra.Command) {
	for _, command := range root.Commands() {
		addCompletion(command)
	}
	root.Flags().VisitAll(func(flag *pflag.Flag) {
		complete := completionOf(root, flag)
		if complete != nil {
			_ = root.RegisterFlagCompletionFunc(flag.Name, complete) // fails only for unknown flags and twice
		}
	})
	if root.ValidArgsFunction == nil && root.Name() != "replay" {
		root.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// completionOf returns the values of a flag; nil for files.
func completionOf(command *cobra.Command, flag *pflag.Flag) cobra.CompletionFunc {
	switch name := flag.Name; {
	case slices.Contains(fileFlags, name):
		return nil
	case name == "output":
		known := documents
		if slices.Contains(sameFormats, command.Name()) || command.HasParent() && slices.Contains(sameFormats, command.Parent().Name()) {
			known = formats
		}
		return oneOf(known)
	case enumerations[command.Name()+" "+name] != nil:
		return oneOf(enumerations[command.Name()+" "+name])
	case enumerations[name] != nil:
		return oneOf(enumerations[name])
	case name == "context" || name == "cluster" || name == "user":
		return func(command *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return connectionOf(command).Known(name), cobra.ShellCompDirectiveNoFileComp
		}
	case name == "namespace" || name == "leader-election-namespace":
		return func(command *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
			return namesIn(command, "Namespace", "", begin)
		}
	}
	return cobra.NoFileCompletions
}

// oneOf completes a value of a list.
func oneOf(values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, begin string) ([]string, cobra.ShellCompDirective) {
		matching := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return !strings.HasPrefix(value, begin) })
		return matching, cobra.ShellCompDirectiveNoFileComp
	}
}

// connectionOf returns the connection that the flags of a command select.
func connectionOf(command *cobra.Command) *offline.Connection {
	connection := &offline.Connection{}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	addConnectionFlags(flags, connection)
	addNamespaceFlag(flags, connection, "")
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if same := flags.Lookup(flag.Name); same != nil && flag.Changed && same.Value.Type() == flag.Value.Type() {
			_ = same.Value.Set(strings.Trim(flag.Value.String(), "[]")) // a list has one element in practice
		}
	})
	return connection
}

// namesIn returns the names of objects of a kind that begin with a text. Without a cluster there are none.
func namesIn(command *cobra.Command, kind, namespace, begin string) ([]string, cobra.ShellCompDirective) {
	ctx, stop := context.WithTimeout(command.Context(), completionPatience)
	defer stop()
	names, err := connectionOf(command).Names(ctx, kind, namespace)
	if err != nil {
		cobra.CompDebugln(err.Error(), true)
	}
	return slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begin) }), cobra.ShellCompDirectiveNoFileComp
}

// completeName returns the completion of a command whose only argument is the name of an object of the kinds.
func completeName(kinds ...string) cobra.CompletionFunc {
	return func(command *cobra.Command, arguments []string, begin string) ([]string, cobra.ShellCompDirective) {
		if len(arguments) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var list []string
		for _, kind := range kinds {
			names, _ := namesIn(command, kind, connectionOf(command).Home(), begin)
			list = append(list, names...)
		}
		slices.Sort(list)
		return slices.Compact(list), cobra.ShellCompDirectiveNoFileComp
	}
}

// completePod completes NAME in the namespace of the command, and NAMESPACE/NAME.
func completePod(command *cobra.Command, arguments []string, begin string) ([]string, cobra.ShellCompDirective) {
	namespace, name, full := strings.Cut(begin, "/")
	if !full || len(arguments) > 0 {
		return completeName("Pod")(command, arguments, begin)
	}
	list, directive := namesIn(command, "Pod", namespace, name)
	for i := range list {
		list[i] = namespace + "/" + list[i]
	}
	return list, directive
}

// completeKind completes the name in KIND/NAME. The names of the kinds themselves are subcommands.
func completeKind(command *cobra.Command, arguments []string, begin string) ([]string, cobra.ShellCompDirective) {
	written, name, both := strings.Cut(begin, "/")
	of := kindNamed(command, written)
	if !both || of == nil || of.ValidArgsFunction == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	of.SetContext(command.Context())
	_ = of.ParseFlags(arguments) // what cannot be parsed does not restrict the names
	list, directive := of.ValidArgsFunction(of, nil, name)
	for i := range list {
		list[i] = written + "/" + list[i]
	}
	return list, directive
}
