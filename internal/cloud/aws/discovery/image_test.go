package discovery

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

func TestReleases(t *testing.T) {
	for _, test := range []struct {
		family              awsv1.Family
		version, kubernetes string
		want                []string
	}{
		{awsv1.FamilyAL2, "latest", "1.32", []string{
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id standard",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id standard",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/recommended/image_id neuron nvidia"}},
		{awsv1.FamilyAL2, "v20240101", "1.29", []string{
			"/aws/service/eks/optimized-ami/1.29/amazon-linux-2/amazon-eks-node-1.29-v20240101/image_id standard",
			"/aws/service/eks/optimized-ami/1.29/amazon-linux-2-arm64/amazon-eks-arm64-node-1.29-v20240101/image_id standard",
			"/aws/service/eks/optimized-ami/1.29/amazon-linux-2-gpu/amazon-eks-gpu-node-1.29-v20240101/image_id neuron nvidia"}},
		{awsv1.FamilyAL2, "latest", "1.33", []string{"there are no images al2@latest for Kubernetes 1.33; use al2023@latest"}},
		{awsv1.FamilyAL2023, "latest", "1.36", []string{
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id standard",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/recommended/image_id standard",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/recommended/image_id nvidia",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/nvidia/recommended/image_id nvidia",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id neuron"}},
		{awsv1.FamilyAL2023, "v20260920", "1.36", []string{
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/amazon-eks-node-al2023-x86_64-standard-1.36-v20260920/image_id standard",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.36-v20260920/image_id standard",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20260920/image_id nvidia",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.36-v20260920/image_id nvidia",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron/amazon-eks-node-al2023-x86_64-neuron-1.36-v20260920/image_id neuron"}},
		{awsv1.FamilyBottlerocket, "v1.46.0", "1.36", []string{
			"/aws/service/bottlerocket/aws-k8s-1.36/x86_64/1.46.0/image_id standard neuron",
			"/aws/service/bottlerocket/aws-k8s-1.36/arm64/1.46.0/image_id standard",
			"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.46.0/image_id nvidia",
			"/aws/service/bottlerocket/aws-k8s-1.36-nvidia/arm64/1.46.0/image_id nvidia"}},
		{awsv1.FamilyWindows2022, "latest", "1.34", []string{
			"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.34/image_id windows 10.0.20348"}},
		{awsv1.FamilyWindows2025, "latest", "1.34",
			[]string{"there are no images windows2025@latest for Kubernetes 1.34; use windows2022@latest"}},
		{awsv1.FamilyWindows2025, "latest", "1.35", []string{
			"/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.35/image_id windows 10.0.26100"}},
		{awsv1.FamilyAL2023, "latest", "33", []string{`version of Kubernetes: is "33", want one such as 1.33`}},
	} {
		var got []string
		releases, err := releasesOf(test.family, test.version, test.kubernetes)
		if err != nil {
			got = []string{strings.TrimPrefix(err.Error(), "spec.amiSelectorTerms: ")}
		}
		for _, r := range releases {
			line := r.parameter
			for _, fit := range r.fits {
				line += " " + variantName(fit)
			}
			got = append(got, line)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s@%s for %s (-want +got):\n%s", test.family, test.version, test.kubernetes, diff)
		}
	}
}

// variantName returns the documentation's name for requirements.
func variantName(fit []corev1.NodeSelectorRequirement) string {
	var text []string
	for _, r := range fit {
		text = append(text, strings.TrimPrefix(r.Key, "karpenter.k8s.aws/instance-")+" "+string(r.Operator)+strings.Join(r.Values, ""))
	}
	line := strings.Join(text, ", ")
	names := map[string]string{
		"accelerator-count DoesNotExist, gpu-count DoesNotExist": "standard", "gpu-count Exists": "nvidia", "accelerator-count Exists": "neuron",
	}
	if name := names[line]; name != "" {
		return name
	}
	return strings.NewReplacer("kubernetes.io/os In", "", "node.kubernetes.io/windows-build In", "", ",", "").Replace(line)
}

func TestWinners(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 11, n, 0, 0, 0, 0, time.UTC) }
	amd, arm := []corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, "amd64")},
		[]corev1.NodeSelectorRequirement{in(corev1.LabelArchStable, "arm64")}
	for _, test := range []struct {
		name   string
		images []Image
		want   string
	}{
		{"newest of each architecture", []Image{{ID: "1", Created: day(1), Requirements: amd},
			{ID: "2", Created: day(2), Requirements: amd}, {ID: "3", Created: day(1), Requirements: arm}}, "2 3"},
		{"an older one that is not deprecated", []Image{{ID: "1", Created: day(1), Requirements: amd},
			{ID: "2", Created: day(2), Deprecated: true, Requirements: amd}}, "1"},
		{"only deprecated ones", []Image{{ID: "1", Created: day(1), Deprecated: true, Requirements: amd},
			{ID: "2", Created: day(2), Deprecated: true, Requirements: amd}}, "2"},
		{"the greater name", []Image{{ID: "1", Name: "b", Created: day(1), Requirements: amd},
			{ID: "2", Name: "a", Created: day(1), Requirements: amd}}, "1"},
		{"newest first, then by id", []Image{{ID: "2", Created: day(1), Requirements: amd}, {ID: "1", Created: day(1), Requirements: arm},
			{ID: "0", Created: day(3), Requirements: slices.Concat(arm, withGPU)}}, "0 1 2"},
		{"none", nil, ""},
	} {
		for range 2 {
			var got []string
			for _, image := range winners(test.images) {
				got = append(got, image.ID)
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%s: %v, want %s", test.name, got, test.want)
			}
			slices.Reverse(test.images)
		}
	}
}

// imagesOf returns the names of the images found for a class.
func imagesOf(ctx context.Context, w *world, class *awsv1.EC2NodeClass, kubernetes string) []string {
	w.Helper()
	found, err := w.Images.Find(ctx, class, kubernetes)
	w.Must(err)
	var names []string
	for _, image := range found {
		names = append(names, image.Name)
	}
	slices.Sort(names)
	return names
}

// TestAlias checks the images of a release, and the machines that each is for.
func TestAlias(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		_, err := w.AWS.ReleaseImages("al2023", "v20261101")
		w.Must(err)
		found, err := w.Images.Find(ctx, classOf(nil), "1.36")
		w.Must(err)
		var lines []string
		for _, image := range found {
			var line []string
			for _, r := range image.Requirements {
				line = append(line, r.Key+" "+string(r.Operator)+strings.Join(r.Values, ""))
			}
			lines = append(lines, image.Name+": "+strings.Join(line, ", "))
		}
		slices.Sort(lines)
		want := []string{
			"amazon-eks-node-al2023-arm64-nvidia-1.36-v20261101: kubernetes.io/arch Inarm64, karpenter.k8s.aws/instance-gpu-count Exists",
			"amazon-eks-node-al2023-arm64-standard-1.36-v20261101: kubernetes.io/arch Inarm64, karpenter.k8s.aws/instance-gpu-count DoesNotExist, karpenter.k8s.aws/instance-accelerator-count DoesNotExist",
			"amazon-eks-node-al2023-x86_64-neuron-1.36-v20261101: kubernetes.io/arch Inamd64, karpenter.k8s.aws/instance-accelerator-count Exists",
			"amazon-eks-node-al2023-x86_64-nvidia-1.36-v20261101: kubernetes.io/arch Inamd64, karpenter.k8s.aws/instance-gpu-count Exists",
			"amazon-eks-node-al2023-x86_64-standard-1.36-v20261101: kubernetes.io/arch Inamd64, karpenter.k8s.aws/instance-gpu-count DoesNotExist, karpenter.k8s.aws/instance-accelerator-count DoesNotExist",
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("al2023@latest (-want +got):\n%s", diff)
		}
		for alias, want := range map[string]string{"al2023@v20261101": "v20261101", "bottlerocket@v1.46.0": "v1.46.0",
			"bottlerocket@latest": "v1."} {
			class := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms[0].Alias = alias })
			if names := imagesOf(ctx, w, withUID(class, alias), "1.36"); len(names) == 0 || !strings.Contains(names[0], want) {
				t.Errorf("%s: found %v, want images of %s", alias, names, want)
			}
		}
		none := withUID(classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms[0].Alias = "al2023@v19990101" }), "none")
		if names := imagesOf(ctx, w, none, "1.36"); len(names) != 0 {
			t.Errorf("a release that does not exist: found %v", names)
		}
		al2 := withUID(classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms[0].Alias = "al2@latest" }), "al2")
		if found, err := w.Images.Find(ctx, al2, "1.32"); err != nil || len(found) != 4 {
			t.Errorf("al2@latest for 1.32: %d images, %v; want 4, that with GPU drivers twice", len(found), err)
		}
		var unsupported *UnsupportedAliasError
		if _, err := w.Images.Find(ctx, al2, "1.33"); !errors.As(err, &unsupported) {
			t.Errorf("al2@latest for 1.33: %v, want an *UnsupportedAliasError", err)
		}
	})
}

func withUID(class *awsv1.EC2NodeClass, uid string) *awsv1.EC2NodeClass {
	class.Name, class.UID = uid, types.UID(uid)
	return class
}

// TestRelease checks that a release is detected when the parameters are read again: because the old image is
// deprecated, because of Forget, or after a day.
func TestRelease(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		at := func(version string) bool {
			names := imagesOf(ctx, w, classOf(nil), "1.36")
			return len(names) == 5 && strings.HasSuffix(names[0], version) && strings.HasSuffix(names[4], version)
		}
		release := func(version string) []string {
			ids, err := w.AWS.ReleaseImages("al2023", version)
			w.Must(err)
			return ids
		}
		first := release("v20270101")
		if !at("v20270101") {
			t.Fatal("the newest release is not found initially")
		}
		w.Pass(time.Minute)
		w.Observed = nil
		if !at("v20270101") || w.Asked("GetParameter") != 0 {
			t.Error("parameters are read again within a day")
		}
		release("v20270201")
		w.Pass(time.Minute)
		w.Must(w.Images.Refresh(ctx))
		if !at("v20270101") {
			t.Error("refreshed although the images in use are not deprecated")
		}
		for _, id := range first {
			w.Must(w.AWS.DeprecateImage(id))
		}
		w.Pass(time.Minute)
		w.Must(w.Images.Refresh(ctx))
		if !at("v20270201") {
			t.Error("a release is not detected after the old images were deprecated")
		}
		release("v20270301")
		w.Images.Forget()
		if !at("v20270301") {
			t.Error("a release is not detected after Forget")
		}
		release("v20270401")
		w.Pass(24 * time.Hour)
		if !at("v20270401") {
			t.Error("a release is not detected after a day")
		}
	})
}

// TestDeprecated checks that a release that the class pins stays in use when it is deprecated, and is shown as
// deprecated.
func TestDeprecated(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		ids, err := w.AWS.ReleaseImages("al2023", "v20261101")
		w.Must(err)
		for _, id := range ids {
			w.Must(w.AWS.DeprecateImage(id))
		}
		pinned := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms[0].Alias = "al2023@v20261101" })
		found, err := w.Images.Find(ctx, pinned, "1.36")
		w.Must(err)
		if len(found) != 5 || !found[0].Deprecated {
			t.Errorf("found %+v, want five deprecated images", found)
		}
	})
}

// TestTerms checks the selection by tag, name, owner, ID and parameter; the newest image of each architecture is
// selected.
func TestTerms(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		mine := map[string]string{"team": "mine"}
		old := w.AWS.AddImage("node-1", "x86_64", mine)
		w.Pass(time.Hour)
		w.AWS.AddImage("node-2", "x86_64", mine)
		w.AWS.AddImage("node-2-arm", "arm64", mine)
		w.AWS.AddImage("node-mac", "x86_64_mac", mine)
		parameter := "/aws/service/eks/optimized-ami/1.35/amazon-linux-2023/arm64/standard/amazon-eks-node-al2023-arm64-standard-1.35-v20260920/image_id"
		for k, test := range []struct {
			name  string
			terms []awsv1.AMISelectorTerm
			want  []string
		}{
			{"tags", []awsv1.AMISelectorTerm{{Tags: mine}}, []string{"node-2", "node-2-arm"}},
			{"any value", []awsv1.AMISelectorTerm{{Tags: map[string]string{"team": "*"}}}, []string{"node-2", "node-2-arm"}},
			{"name", []awsv1.AMISelectorTerm{{Name: "node-1"}}, []string{"node-1"}},
			{"name of Amazon's", []awsv1.AMISelectorTerm{{Name: "amazon-eks-node-al2023-arm64-standard-1.36-v2026*"}},
				[]string{"amazon-eks-node-al2023-arm64-standard-1.36-v20260920"}},
			{"name of another owner", []awsv1.AMISelectorTerm{{Name: "node-1", Owner: "amazon"}}, nil},
			{"id of an old one", []awsv1.AMISelectorTerm{{ID: old}}, []string{"node-1"}},
			{"id and tags", []awsv1.AMISelectorTerm{{ID: old}, {Tags: mine}}, []string{"node-2", "node-2-arm"}},
			{"parameter", []awsv1.AMISelectorTerm{{SSMParameter: parameter}}, []string{"amazon-eks-node-al2023-arm64-standard-1.35-v20260920"}},
			{"parameter that does not exist, and id", []awsv1.AMISelectorTerm{{SSMParameter: "/none"}, {ID: old}}, []string{"node-1"}},
			{"id that does not exist", []awsv1.AMISelectorTerm{{ID: "ami-0123456789abcdef0"}}, nil},
		} {
			class := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms = test.terms })
			class.Generation = int64(k)
			if got := imagesOf(ctx, w, class, "1.36"); !slices.Equal(got, test.want) {
				t.Errorf("%s: found %v, want %v", test.name, got, test.want)
			}
		}
	})
}

// TestTermsFail checks that a parameter that may not be read results in an error instead of a missing image.
func TestTermsFail(t *testing.T) {
	within(t, awssim.Options{}, Kubernetes{}, func(ctx context.Context, w *world) {
		_, err := w.AWS.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ssm"})
		w.Must(err)
		for _, term := range []awsv1.AMISelectorTerm{{SSMParameter: "/mine"}, {Alias: "al2023@latest"}} {
			class := classOf(func(spec *awsv1.EC2NodeClassSpec) { spec.AMISelectorTerms = []awsv1.AMISelectorTerm{term} })
			if _, err := w.Images.Find(ctx, class, "1.36"); KindOf(err) != Denied || !strings.Contains(err.Error(), "SSM GetParameter") {
				t.Errorf("%+v: %v, want an error that SSM GetParameter is denied", term, err)
			}
		}
	})
}
