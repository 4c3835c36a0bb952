package legacy

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
)

// Settings are those that are given by their names before v1: environment variables, and the ConfigMap
// karpenter-global-settings in the controller's namespace. The new names take precedence: a flag of the command line,
// and a variable whose value differs from the flag's default (a chart writes the default for a value that is not
// set).
type Settings struct {
	flags *pflag.FlagSet
	// given are the flags of the command line.
	given map[string]bool
	// notes are lines for the log that have not been written yet.
	notes []string
	// cluster is the configuration for converting Provisioners and AWSNodeTemplates.
	cluster settings.Cluster
}

const (
	// settingsPatience is how long reading the ConfigMap is retried while the API server returns errors.
	settingsPatience = 30 * time.Second
	settingsPause    = 500 * time.Millisecond
)

// invalid is the error of a setting that cannot be parsed.
type invalid struct{ error }

// ExitCode is that of invalid input.
func (invalid) ExitCode() int { return 2 }

// NewSettings returns the settings of a command line. It must be called before variables set its flags.
func NewSettings(flags *pflag.FlagSet) *Settings {
	s := &Settings{flags: flags, given: map[string]bool{}}
	flags.Visit(func(f *pflag.Flag) { s.given[f.Name] = true })
	return s
}

// ReadEnvironment sets the flags that variables of old names set.
func (s *Settings) ReadEnvironment(lookup func(string) string) error {
	return s.read(settings.FromEnvironment(lookup), "the environment", "unset them")
}

// ReadConfigMap sets the flags that the ConfigMap of old settings sets, if there is one in the namespace.
func (s *Settings) ReadConfigMap(ctx context.Context, config *rest.Config, namespace string) error {
	data, err := s.configMap(ctx, config, namespace)
	if err != nil || data == nil {
		return err
	}
	where := fmt.Sprintf("namespace %s, ConfigMap %s", namespace, settings.ConfigMap)
	return s.read(settings.FromConfigMap(data), where, "delete the ConfigMap if it is no longer needed")
}

// configMap returns the data of the ConfigMap; nil if it does not exist.
func (s *Settings) configMap(ctx context.Context, config *rest.Config, namespace string) (map[string]string, error) {
	client, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("creating a client for the ConfigMap of old settings: %w", err)
	}
	var data map[string]string
	var last error
	err = wait.PollUntilContextTimeout(ctx, settingsPause, settingsPatience, true, func(ctx context.Context) (bool, error) {
		found, err := client.ConfigMaps(namespace).Get(ctx, settings.ConfigMap, metav1.GetOptions{})
		switch {
		case err == nil:
			data = found.Data
		case apierrors.IsForbidden(err):
			s.notes = append(s.notes, fmt.Sprintf("the ConfigMap %s in namespace %s may not be read, so settings of versions before v1 "+
				"are not applied", settings.ConfigMap, namespace))
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

// read sets the flags that are not set otherwise, and keeps the remaining settings. Values that are used and cannot
// be parsed give one error that names all of them. where is the place of the settings, away describes how to remove
// them.
func (s *Settings) read(old settings.Old, where, away string) error {
	s.notes = append(s.notes, old.Notes...)
	var problems, instead []string
	for _, m := range old.Mistakes {
		switch {
		case m.Idle:
			s.notes = append(s.notes, fmt.Sprintf("%s: %s; ignored because no setting depends on it", where, m.Error()))
		case m.Flag != "" && s.isSet(m.Flag):
			s.notes = append(s.notes, fmt.Sprintf("%s: %s; ignored because %s is set", where, m.Error(), settings.Variable(m.Flag)))
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
		return invalid{fmt.Errorf("%s: %s (correct it, %s)", where, strings.Join(problems, "; "), away)}
	}
	for _, setting := range old.Settings {
		flag := s.flags.Lookup(setting.Flag)
		if s.isSet(setting.Flag) {
			if flag.Value.String() != setting.Value {
				s.notes = append(s.notes, fmt.Sprintf("%s is ignored because %s has another value", setting.From, settings.Variable(setting.Flag)))
			}
			continue
		}
		if err := s.flags.Set(setting.Flag, setting.Value); err != nil {
			return invalid{fmt.Errorf("%s is %q: %w", setting.From, setting.Value, err)}
		}
	}
	s.cluster = joined(s.cluster, old.Cluster)
	return nil
}

// isSet reports whether a setting was given by its current name: by a flag, or by a variable whose value differs
// from the default (charts write the default for values that are not set).
func (s *Settings) isSet(name string) bool {
	flag := s.flags.Lookup(name)
	return s.given[name] || flag.Value.String() != flag.DefValue
}

// joined returns a, completed by the settings of b that a lacks.
func joined(a, b settings.Cluster) settings.Cluster {
	if len(a.Tags) == 0 {
		a.Tags = b.Tags
	}
	a.ManyPods, a.Drift = a.ManyPods || b.ManyPods, a.Drift || b.Drift
	return a
}

// Notes returns the lines for the log that are not written yet, each once.
func (s *Settings) Notes() []string {
	notes := s.notes
	s.notes = nil
	return notes
}
