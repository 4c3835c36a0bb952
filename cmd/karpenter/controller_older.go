package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/karpenter-go/karpenter/internal/legacy/settings"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// This file reads settings by their names before v1: environment variables, and the ConfigMap
// karpenter-global-settings in the controller's namespace. The new names take precedence: a flag of the command line,
// and a variable whose value differs from the flag's default (a chart writes the default for a value that is not
// set).

// older holds the settings that were given by old names.
type older struct {
	// given are the flags of the command line.
	given map[string]bool
	// notes are lines for the log that have not been written yet.
	notes []string
	// cluster is the configuration for converting Provisioners and AWSNodeTemplates.
	cluster settings.Cluster
}

// settingsPatience is how long reading the ConfigMap is retried while the API server returns errors.
const settingsPatience = 30 * time.Second

// commandLine records which flags were given. It must run before variables are read.
func (o *controllerOptions) commandLine(flags *pflag.FlagSet) {
	o.flags, o.older.given = flags, map[string]bool{}
	flags.Visit(func(f *pflag.Flag) { o.older.given[f.Name] = true })
}

// takeEnvironment reads the variables of old names.
func (o *controllerOptions) takeEnvironment(lookup func(string) string) error {
	return o.take(settings.FromEnvironment(lookup), "the environment", "unset them")
}

// takeConfigMap reads the ConfigMap of old settings, if there is one.
func (o *controllerOptions) takeConfigMap(ctx context.Context, config *rest.Config) error {
	data, err := o.globalSettings(ctx, config)
	if err != nil || data == nil {
		return err
	}
	where := fmt.Sprintf("namespace %s, ConfigMap %s", ownNamespace(o.electionNamespace), settings.ConfigMap)
	return o.take(settings.FromConfigMap(data), where, "delete the ConfigMap if it is no longer needed")
}

// globalSettings returns the data of the ConfigMap; nil if it does not exist.
func (o *controllerOptions) globalSettings(ctx context.Context, config *rest.Config) (map[string]string, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the ConfigMap of old settings: %w", err)
	}
	var data map[string]string
	var last error
	namespace := ownNamespace(o.electionNamespace)
	err = wait.PollUntilContextTimeout(ctx, rejoinPause, settingsPatience, true, func(ctx context.Context) (bool, error) {
		found, err := client.ConfigMaps(namespace).Get(ctx, settings.ConfigMap, metav1.GetOptions{})
		switch {
		case err == nil:
			data = found.Data
		case apierrors.IsForbidden(err):
			o.older.notes = append(o.older.notes, fmt.Sprintf("the ConfigMap %s in namespace %s may not be read, so settings of versions before v1 are not applied", settings.ConfigMap, namespace))
		case !apierrors.IsNotFound(err):
			last = err
			return false, nil
		}
		return true, nil
	})
	if err != nil && last != nil {
		err = last
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ConfigMap %s in namespace %s: %w", settings.ConfigMap, namespace, err)
	}
	return data, nil
}

// take sets the flags that are not set otherwise, and keeps the remaining settings. Values that are used and cannot
// be parsed give one error that names all of them. where is the place of the settings, away describes how to remove
// them.
func (o *controllerOptions) take(old settings.Old, where, away string) error {
	o.older.notes = append(o.older.notes, old.Notes...)
	var problems, instead []string
	for _, m := range old.Mistakes {
		switch {
		case m.Idle:
			o.older.notes = append(o.older.notes, fmt.Sprintf("%s: %s; ignored because no setting depends on it", where, m.Error()))
		case m.Flag != "" && o.saidAnew(m.Flag):
			o.older.notes = append(o.older.notes, fmt.Sprintf("%s: %s; ignored because %s is set", where, m.Error(), settings.Variable(m.Flag)))
		default:
			problems = append(problems, m.Error())
			if m.Flag != "" {
				instead = append(instead, settings.Variable(m.Flag))
			}
		}
	}
	if len(problems) > 0 {
		if len(instead) > 0 {
			away = "set " + strings.Join(instead, ", ") + " to a value other than the default, or set the flag, or " + away
		}
		return cli.UsageErrorf("%s: %s (correct it, %s)", where, strings.Join(problems, "; "), away)
	}
	for _, s := range old.Settings {
		flag := o.flags.Lookup(s.Flag)
		if o.saidAnew(s.Flag) {
			if flag.Value.String() != s.Value {
				o.older.notes = append(o.older.notes, fmt.Sprintf("%s is ignored because %s has another value", s.From, settings.Variable(s.Flag)))
			}
			continue
		}
		if err := o.flags.Set(s.Flag, s.Value); err != nil {
			return cli.UsageErrorf("%s is %q: %w", s.From, s.Value, err)
		}
	}
	o.older.cluster = joined(o.older.cluster, old.Cluster)
	return nil
}

// saidAnew reports whether a setting was given by its current name: by a flag, or by a variable whose value differs
// from the default (charts write the default for values that are not set).
func (o *controllerOptions) saidAnew(name string) bool {
	flag := o.flags.Lookup(name)
	return o.older.given[name] || flag.Value.String() != flag.DefValue
}

// joined returns a, completed by the settings of b that a lacks.
func joined(a, b settings.Cluster) settings.Cluster {
	if len(a.Tags) == 0 {
		a.Tags = b.Tags
	}
	a.ManyPods, a.Drift = a.ManyPods || b.ManyPods, a.Drift || b.Drift
	return a
}

// olderNotes returns the lines that are not written yet, each once.
func (o *controllerOptions) olderNotes() []string {
	notes := o.older.notes
	o.older.notes = nil
	return notes
}
