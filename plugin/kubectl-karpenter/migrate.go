package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/class"
	"github.com/karpenter-go/karpenter/internal/legacy/migrate"
	"github.com/karpenter-go/karpenter/plugin/admission"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// migrateOptions holds the flags of `kubectl karpenter migrate`.
type migrateOptions struct {
	files []string
	live  bool
	offline.Connection
	workloads       bool
	check           bool
	report, values  string
	cloudProvider   string
	kubernetes      string
	honor           bool
	clusterName     string
	instanceProfile string
}

func newMigrateCommand() *cobra.Command {
	var o migrateOptions
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Convert manifests, chart values and a Cluster Autoscaler to the current API",
		Long: `Reads manifests and prints them in the current API: Provisioners of karpenter.sh/v1alpha3, v1alpha4 and
v1alpha5, AWSNodeTemplates, NodePools and EC2NodeClasses of v1beta1, and invalid ones of v1. Comments are kept where
possible. Other documents are printed unchanged, except for old names of labels and annotations in pods and pod
templates. The report on standard error lists what was changed, defaulted and repaired, and what is impossible.

Values of the Helm chart, of any version, get the current names. The ConfigMap karpenter-global-settings is converted
to values, which --values writes to a file.

For the Cluster Autoscaler, pass its Deployment together with its node groups: a ClusterConfig of eksctl, or nodes
(kubectl get nodes -o yaml). For each group, a NodePool and, if the instances are described, an EC2NodeClass are
proposed, with the steps of the migration.

With --live, all objects are read from the cluster, in any version that it serves; nothing is written to it. NodePools
and node classes are printed. Workloads with old names are reported; --workloads prints them, too.

The printed objects are validated with the schemas and rules of the current CRDs, and EC2NodeClasses as the controller
validates them. What an API server would reject or the controller would refuse is reported as impossible. Expressions
are compiled, but not computed for instance types: that is what simulate does.

The exit code is 0 if everything is migrated, 1 if something is impossible (the rest is printed), and 2 for invalid
input; if a file of a folder cannot be read, the rest is printed. With --check, only the report is printed, and the exit
code is 1 if anything would change, too.`,
		Example: "  kubectl karpenter migrate -f provisioners.yaml > nodepools.yaml\n  kubectl karpenter migrate -f manifests/ --check\n  kubectl karpenter migrate --live --values values.yaml > today.yaml\n  kubectl karpenter migrate -f values.yaml > new-values.yaml\n  kubectl -n kube-system get deploy cluster-autoscaler -o yaml \\\n    | kubectl karpenter migrate -f - -f cluster.yaml",
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return o.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	o.addFlags(command.Flags())
	return command
}

func (o *migrateOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&o.files, "filename", "f", nil,
		"a file, a folder's *.yaml, *.yml and *.json, or - for standard input; may be given several times")
	flags.BoolVar(&o.live, "live", false, "read a live cluster")
	addConnectionFlags(flags, &o.Connection)
	addNamespaceFlag(flags, &o.Connection, "with --live, only workloads of this namespace (default: those of all namespaces)")
	flags.BoolVar(&o.workloads, "workloads", false,
		"with --live, also print workloads with old names, without replicas; applying them restarts their pods")
	flags.BoolVar(&o.check, "check", false, "print no manifests; exit with 1 if anything would change or is impossible")
	flags.StringVar(&o.report, "report", "", "a file to which the report is also written as JSON")
	flags.StringVar(&o.values, "values", "", "a file to which the values of the chart are written that replace the ConfigMap "+migrate.GlobalSettings)
	flags.StringVar(&o.cloudProvider, "cloud-provider", "",
		"the cloud of Provisioners: aws or kwok (default: that of the cluster with --live, otherwise aws)")
	flags.StringVar(&o.clusterName, "cluster-name", "",
		"the name of the cluster for older objects that read it from the settings of the controller, if it is not in the input")
	flags.StringVar(&o.instanceProfile, "instance-profile", "",
		"the instance profile of objects without one, if it is not in the input")
	flags.StringVar(&o.kubernetes, "kubernetes-version", "", "the Kubernetes version of the cluster, such as 1.34; images of Amazon Linux 2 exist up to 1.32")
	flags.BoolVar(&o.honor, "honor-safe-to-evict", false,
		"add karpenter.sh/do-not-disrupt: \"true\" to pods with the Cluster Autoscaler's safe-to-evict: \"false\"; "+
			"always set if a Cluster Autoscaler is in the input")
}

// verify rejects invalid combinations of flags.
func (o *migrateOptions) verify() (minor int, err error) {
	switch {
	case len(o.files) == 0 && !o.live:
		return 0, cli.UsageErrorf("no input: set -f FILE, -f DIR, -f - or --live")
	case !slices.Contains([]string{"", "aws", "kwok"}, o.cloudProvider):
		return 0, cli.UsageErrorf("--cloud-provider is %q, want aws or kwok", o.cloudProvider)
	case o.Kubeconfig != "" && !o.live:
		return 0, cli.UsageErrorf("--kubeconfig requires --live")
	case o.Context != "" && !o.live:
		return 0, cli.UsageErrorf("--context requires --live")
	case o.Namespace != "" && !o.live:
		return 0, cli.UsageErrorf("--namespace requires --live")
	case o.workloads && !o.live:
		return 0, cli.UsageErrorf("--workloads requires --live; workloads in files are always printed")
	case o.kubernetes == "":
		return 0, nil
	}
	_, after, found := strings.Cut(strings.TrimPrefix(o.kubernetes, "v"), ".")
	text, _, _ := strings.Cut(after, ".")
	if minor, err = strconv.Atoi(strings.TrimSuffix(text, "+")); !found || err != nil {
		return 0, cli.UsageErrorf("--kubernetes-version is %q, want a version such as 1.34", o.kubernetes)
	}
	return minor, nil
}

func (o *migrateOptions) run(ctx context.Context, in io.Reader, out, problems io.Writer) error {
	minor, err := o.verify()
	if err != nil {
		return err
	}
	server, err := admission.New()
	if err != nil {
		return err
	}
	options := migrate.Options{
		ClusterName: o.clusterName, InstanceProfile: o.instanceProfile, KubernetesMinor: minor, Kwok: o.cloudProvider == "kwok",
		HonorSafeToEvict: o.honor, Workloads: o.workloads, InstanceTypes: migratedTypes, Check: faultsBy(server),
	}
	files, unread, err := o.read(in)
	if err != nil {
		return err
	}
	if o.live {
		cluster, err := readCluster(ctx, &o.Connection)
		if err != nil {
			return err
		}
		files = append(files, cluster.file)
		if options.KubernetesMinor == 0 {
			options.KubernetesMinor = cluster.minor
		}
		if o.cloudProvider == "" {
			kwok, because := cluster.clouds.kwok()
			options.Kwok = kwok
			if because != "" {
				fmt.Fprintln(problems, because)
			}
		}
	}
	result := migrate.Run(files, options)
	result.Report = append(result.Report, unread...)
	return o.write(result, len(unread), out, problems)
}

// faultsBy returns a function that reports what an API server would reject, and what the controller would refuse of
// objects that the API server accepts, as faults of package migrate.
func faultsBy(server *admission.Server) func(map[string]any) []migrate.Fault {
	return func(object map[string]any) []migrate.Fault {
		refusals, err := server.Create(object)
		if err != nil { // the definitions are invalid, which a test excludes
			return []migrate.Fault{{Problem: err.Error()}}
		}
		var faults []migrate.Fault
		for _, r := range refusals {
			faults = append(faults, migrate.Fault(r))
		}
		if len(faults) == 0 {
			faults = refusedByController(object)
		}
		return faults
	}
}

// refusedByController returns why the controller could launch no machine with a valid object, if it is an EC2NodeClass: the
// first reason, in the words of its condition.
func refusedByController(object map[string]any) []migrate.Fault {
	var found awsv1.EC2NodeClass
	if object["kind"] != awsv1.Kind || runtime.DefaultUnstructuredConverter.FromUnstructured(object, &found) != nil {
		return nil
	}
	found.Status = awsv1.EC2NodeClassStatus{} // of a cluster whose feature gates do not matter here
	field, problem, cut := strings.Cut(class.Unlaunchable(&found), ": ")
	switch {
	case field == "":
		return nil
	case !cut || strings.Contains(field, " "):
		return []migrate.Fault{{Problem: class.Unlaunchable(&found)}}
	}
	return []migrate.Fault{{Field: field, Problem: problem}}
}

// write prints the requested output. It returns an error for objects that cannot be migrated and for files that could
// not be read.
func (o *migrateOptions) write(result migrate.Result, unread int, out, problems io.Writer) error {
	if _, err := io.WriteString(problems, result.Report.Text()); err != nil {
		return err
	}
	if o.report != "" {
		var text strings.Builder
		if err := result.Report.JSON(&text); err != nil {
			return err
		}
		if err := os.WriteFile(o.report, []byte(text.String()), 0o644); err != nil {
			return fmt.Errorf("writing the report: %w", offline.Readable(err))
		}
	}
	impossible := result.Report.Count(migrate.Impossible)
	if !o.check {
		if err := o.writeManifests(result, out, problems); err != nil {
			return err
		}
	}
	switch {
	case unread > 0:
		return cli.UsageErrorf("%s could not be read; see the report", table.Plural(unread, "file"))
	case impossible > 0:
		return fmt.Errorf("%s cannot be migrated; see the report", table.Plural(impossible, "setting"))
	case o.check && result.Changed:
		return errors.New("manifests would change; see the report")
	}
	return nil
}

func (o *migrateOptions) writeManifests(result migrate.Result, out, problems io.Writer) error {
	if o.values != "" && len(result.Values) > 0 {
		if err := os.WriteFile(o.values, result.Values, 0o644); err != nil {
			return fmt.Errorf("writing the chart's values: %w", offline.Readable(err))
		}
	} else if o.values != "" {
		fmt.Fprintf(problems, "%s is not written, because the input contains no ConfigMap %s\n", o.values, migrate.GlobalSettings)
	}
	_, err := out.Write(result.Manifests)
	return err
}

// read reads all named files, and those of named folders. A file of a folder that cannot be read is skipped and gets
// an entry in the report.
func (o *migrateOptions) read(in io.Reader) (files []migrate.File, unread migrate.Report, err error) {
	for _, path := range o.files {
		if path == "-" {
			data, err := offline.ReadText(in, 0, offline.LargestFile)
			if err != nil {
				return nil, nil, cli.UsageErrorf("standard input: %w", err)
			}
			files = append(files, migrate.File{Name: "standard input", Text: data})
			continue
		}
		paths, folder, err := manifestsAt(path)
		if err != nil {
			return nil, nil, err
		}
		for _, path := range paths {
			data, err := offline.ReadFile(path)
			switch {
			case err == nil:
				files = append(files, migrate.File{Name: filepath.ToSlash(path), Text: data})
			case folder:
				unread = append(unread, &migrate.Entry{Origin: filepath.ToSlash(path), Object: "file",
					Notes: []migrate.Note{{Outcome: migrate.Impossible, Text: "cannot be read: " + err.Error()}}})
			default:
				return nil, nil, cli.UsageErrorf("reading manifests: %w", err)
			}
		}
	}
	return files, unread, nil
}

// manifestsAt returns the file, or the manifests of a folder in the order of their names.
func manifestsAt(path string) (paths []string, folder bool, err error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, false, cli.UsageErrorf("reading manifests: %w", offline.Readable(err))
	}
	if !about.IsDir() {
		return []string{path}, false, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, false, cli.UsageErrorf("reading manifests: %w", offline.Readable(err))
	}
	for _, entry := range entries {
		if file := filepath.Join(path, entry.Name()); offline.PlainFile(file) && slices.Contains([]string{".yaml", ".yml", ".json"},
			filepath.Ext(file)) {
			paths = append(paths, file)
		}
	}
	if len(paths) == 0 {
		return nil, false, cli.UsageErrorf("%s: contains no file named *.yaml, *.yml or *.json, want manifests", path)
	}
	return paths, true, nil
}
