package awssim

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/google/go-cmp/cmp"
)

func filters(pairs ...string) []ec2types.Filter {
	var list []ec2types.Filter
	for k := 0; k < len(pairs); k += 2 {
		list = append(list, ec2types.Filter{Name: &pairs[k], Values: strings.Split(pairs[k+1], ",")})
	}
	return list
}

// The SDK's paginator returns all types with the data of the catalog.
func TestInstanceTypes(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		all, pageCount := map[string]ec2types.InstanceTypeInfo{}, 0
		request := &ec2.DescribeInstanceTypesInput{Filters: filters("supported-virtualization-type", "hvm",
			"processor-info.supported-architecture", "x86_64,arm64"), MaxResults: aws.Int32(100)}
		for pages := ec2.NewDescribeInstanceTypesPaginator(w.ec2, request); pages.HasMorePages(); pageCount++ {
			page, err := pages.NextPage(ctx)
			w.must(err)
			for _, t := range page.InstanceTypes {
				all[string(t.InstanceType)] = t
			}
		}
		if want := (len(all) + 99) / 100; len(all) < 1300 || pageCount != want {
			t.Errorf("%d types on %d pages, want over 1300 on %d", len(all), pageCount, want)
		}
		m5 := all["m5.large"]
		got := []any{*m5.VCpuInfo.DefaultVCpus, *m5.MemoryInfo.SizeInMiB, *m5.NetworkInfo.MaximumNetworkInterfaces,
			*m5.NetworkInfo.Ipv4AddressesPerInterface, m5.Hypervisor, m5.GpuInfo == nil,
			m5.InstanceStorageInfo == nil, m5.NeuronInfo == nil, m5.NetworkInfo.EfaInfo == nil, *m5.ProcessorInfo.Manufacturer,
			*m5.EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps, m5.SupportedUsageClasses}
		want := []any{int32(2), int64(8192), int32(3), int32(10), ec2types.InstanceTypeHypervisorNitro, true, true,
			true, true, "Intel", int32(4750), []ec2types.UsageClassType{"on-demand", "spot"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("m5.large -want +got:\n%s", diff)
		}
		p5 := all["p5.48xlarge"]
		got = []any{*p5.GpuInfo.Gpus[0].Name, *p5.GpuInfo.Gpus[0].Count, *p5.NetworkInfo.EfaInfo.MaximumEfaInterfaces,
			len(p5.NetworkInfo.NetworkCards), *p5.NetworkInfo.NetworkCards[0].MaximumNetworkInterfaces,
			*p5.InstanceStorageInfo.TotalSizeInGB, p5.InstanceStorageInfo.NvmeSupport}
		want = []any{"H100", int32(8), int32(32), 32, int32(2), int64(30400), ec2types.EphemeralNvmeSupportRequired}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("p5.48xlarge -want +got:\n%s", diff)
		}
		_, err := w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{MaxResults: aws.Int32(101)})
		w.refused(err, "InvalidParameterValue")
		_, err = w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []ec2types.InstanceType{"m5.nonsense"}})
		w.refused(err, "InvalidInstanceType")
		_, err = w.ec2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{NextToken: aws.String("nonsense")})
		w.refused(err, "InvalidPaginationToken")
		offerings := map[string]bool{}
		for pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(w.ec2,
			&ec2.DescribeInstanceTypeOfferingsInput{LocationType: "availability-zone",
				Filters: filters("instance-type", "m5.*")}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			w.must(err)
			for _, o := range page.InstanceTypeOfferings {
				offerings[string(o.InstanceType)+" "+*o.Location] = true
			}
		}
		switch {
		case !offerings["m5.large us-east-1a"]:
			t.Errorf(`offerings: offerings["m5.large us-east-1a"] is false, %v`, offerings)
		case offerings["m5.large us-east-1e"]:
			t.Errorf(`offerings: offerings["m5.large us-east-1e"] is true, %v`, offerings)
		case offerings["m5a.large us-east-1a"]:
			t.Errorf(`offerings: offerings["m5a.large us-east-1a"] is true, %v`, offerings)
		}
	})
}

// Reads of the network, with filters and small pages.
func TestNetwork(t *testing.T) {
	in(t, Options{PageSize: 2}, func(ctx context.Context, w *world) {
		var zones []string
		for pages := ec2.NewDescribeSubnetsPaginator(w.ec2,
			&ec2.DescribeSubnetsInput{Filters: filters("tag:karpenter.sh/discovery", "sandbox")}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			w.must(err)
			if len(page.Subnets) > 2 {
				t.Errorf("a page of %d", len(page.Subnets))
			}
			for _, s := range page.Subnets {
				zones = append(zones, *s.AvailabilityZone)
				if *s.AvailableIpAddressCount != 8187 || *s.MapPublicIpOnLaunch {
					t.Errorf("subnet %+v", s)
				}
			}
		}
		if len(zones) != 6 {
			t.Errorf("private subnets in %v", zones)
		}
		_, err := w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: []string{"subnet-0"}})
		w.refused(err, "InvalidSubnetID.NotFound")
		_, err = w.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: filters("color", "blue")})
		w.refused(err, "InvalidParameterValue")
		groups, err := w.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: filters("group-name", "eks-cluster-sg-*")})
		w.must(err)
		if len(groups.SecurityGroups) != 2 || *groups.SecurityGroups[0].VpcId == *groups.SecurityGroups[1].VpcId {
			t.Errorf("groups %+v", groups.SecurityGroups)
		}
		out, err := w.ec2.DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{})
		w.must(err)
		ids := map[string]bool{}
		for _, z := range out.AvailabilityZones {
			ids[*z.ZoneId] = true
		}
		switch {
		case *out.AvailabilityZones[0].ZoneId == "use1-az1":
			t.Errorf(`*out.AvailabilityZones[0].ZoneId is "use1-az1"`)
		case len(ids) != 6:
			t.Errorf("len(ids) is %v, want 6, zones %v", len(ids), ids)
		case !ids["use1-az1"]:
			t.Errorf(`ids["use1-az1"] is false, zones %v`, ids)
		}
	})
}

// Images are found by parameter, by ID and by name. A release changes the values of the parameters, and old images
// remain.
func TestImages(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		before := w.al2023(ctx, "x86_64")
		ids, err := w.ReleaseImages("al2023", "v20261120")
		w.must(err)
		if after := w.al2023(ctx, "x86_64"); after == before {
			t.Errorf("after a release the parameter is %s, as before", after)
		}
		if want := 5 * 8; len(ids) != want { // five images for each of eight versions of Kubernetes
			t.Errorf("a release has %d images, want %d", len(ids), want)
		}
		parameter, err := w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.36-v20261120/image_id")})
		w.must(err)
		out, err := w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{*parameter.Parameter.Value}})
		w.must(err)
		switch i := out.Images[0]; {
		case *i.Name != "amazon-eks-node-al2023-arm64-nvidia-1.36-v20261120":
			t.Errorf(`*i.Name is %v, want "amazon-eks-node-al2023-arm64-nvidia-1.36-v20261120", image %+v`, *i.Name, i)
		case i.Architecture != "arm64":
			t.Errorf(`i.Architecture is %v, want "arm64"`, i.Architecture)
		case *i.OwnerId != amazon:
			t.Errorf("*i.OwnerId is %v, want %v, image %+v", *i.OwnerId, amazon, i)
		case *i.BlockDeviceMappings[0].Ebs.VolumeSize != 20:
			t.Errorf("*i.BlockDeviceMappings[0].Ebs.VolumeSize is %v, want 20, image %+v", *i.BlockDeviceMappings[0].Ebs.VolumeSize, i)
		}
		w.must(w.DeprecateImage(before))
		gone, err := w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: filters("image-id", before)})
		w.must(err)
		shown, err := w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Filters: filters("image-id", before), IncludeDeprecated: aws.Bool(true)})
		w.must(err)
		switch {
		case len(gone.Images) != 0:
			t.Errorf("len(gone.Images) is %v, want 0", len(gone.Images))
		case len(shown.Images) != 1:
			t.Errorf("len(shown.Images) is %v, want 1", len(shown.Images))
		case shown.Images[0].DeprecationTime == nil:
			t.Errorf("shown.Images[0].DeprecationTime is nil")
		}
		own := w.AddImage("mine", "x86_64", map[string]string{"team": "a"})
		self, err := w.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: filters("tag:team", "*")})
		w.must(err)
		if len(self.Images) != 1 || *self.Images[0].ImageId != own {
			t.Errorf("own images %+v", self.Images)
		}
	})
}

// Every alias of the families has its parameters.
func TestParameters(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		names := []string{
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-arm64/recommended/image_id",
			"/aws/service/eks/optimized-ami/1.32/amazon-linux-2-gpu/amazon-eks-gpu-node-1.32-v20260820/image_id",
			"/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/neuron/recommended/image_id",
			"/aws/service/bottlerocket/aws-k8s-1.36/arm64/latest/image_id", "/aws/service/bottlerocket/aws-k8s-1.36-nvidia/x86_64/1.46.0/image_id",
			"/aws/service/ami-windows-latest/Windows_Server-2022-English-Core-EKS_Optimized-1.36/image_id",
			"/aws/service/eks/optimized-ami/1.33/amazon-linux-2/recommended/image_id",
		}
		out, err := w.ssm.GetParameters(ctx, &ssm.GetParametersInput{Names: names})
		w.must(err)
		switch {
		case len(out.Parameters) != 7:
			t.Errorf("len(out.Parameters) is %v, want 7", len(out.Parameters))
		case len(out.InvalidParameters) != 1:
			t.Errorf("len(out.InvalidParameters) is %v, want 1, found, invalid %v", len(out.InvalidParameters), out.InvalidParameters)
		case out.InvalidParameters[0] != names[7]:
			t.Errorf("out.InvalidParameters[0] is %v, want %v", out.InvalidParameters[0], names[7])
		}
		_, err = w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/nothing")})
		w.refused(err, "ParameterNotFound")
		count := 0
		path := aws.String("/aws/service/bottlerocket/aws-k8s-1.36/")
		for pages := ssm.NewGetParametersByPathPaginator(w.ssm,
			&ssm.GetParametersByPathInput{Path: path, Recursive: aws.Bool(true)}); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			w.must(err)
			count += len(page.Parameters)
		}
		if count != 2*(1+2*2)*2 { // architectures x (latest, two releases by two names) x values
			t.Errorf("%d parameters of Bottlerocket", count)
		}
		w.SetParameter("/mine", "ami-1")
		w.DeleteParameter("/mine")
		_, err = w.ssm.GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/mine")})
		w.refused(err, "ParameterNotFound")
	})
}

// On-demand prices are those of the catalog. Spot prices are lower and have a timestamp.
func TestPrices(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		filter := func(field, value string) pricingtypes.Filter {
			return pricingtypes.Filter{Field: &field, Type: "TERM_MATCH", Value: &value}
		}
		prices := map[string]string{}
		request := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"),
			Filters: []pricingtypes.Filter{filter("regionCode", "us-east-1"), filter("tenancy", "Shared"),
				filter("productFamily", "Compute Instance"), filter("operatingSystem", "Linux")}}
		for pages := pricing.NewGetProductsPaginator(w.prices, request); pages.HasMorePages(); {
			page, err := pages.NextPage(ctx)
			w.must(err)
			for _, item := range page.PriceList {
				var product struct {
					Product struct{ Attributes struct{ InstanceType string } }
					Terms   struct {
						OnDemand map[string]struct {
							PriceDimensions map[string]struct{ PricePerUnit struct{ USD string } }
						}
					}
				}
				w.must(json.Unmarshal([]byte(item), &product))
				for _, term := range product.Terms.OnDemand {
					for _, d := range term.PriceDimensions {
						prices[product.Product.Attributes.InstanceType] = d.PricePerUnit.USD
					}
				}
			}
		}
		switch {
		case prices["m5.large"] != "0.0960000000":
			t.Errorf(`prices["m5.large"] is %v, want "0.0960000000"`, prices["m5.large"])
		case prices["c5.metal"] != "":
			t.Errorf(`prices["c5.metal"] is %v, want ""`, prices["c5.metal"])
		case len(prices) < 1100:
			t.Errorf("len(prices) is %v, want at least 1100", len(prices))
		}
		windows, err := w.prices.GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"),
			Filters: []pricingtypes.Filter{filter("instanceType", "m5.large"), filter("operatingSystem", "Windows")}})
		w.must(err)
		if len(windows.PriceList) != 1 || !strings.Contains(windows.PriceList[0], `"0.1880000000"`) {
			t.Errorf("with Windows: %v, want 0.188 USD for m5.large", windows.PriceList)
		}
		_, err = w.prices.GetProducts(ctx, &pricing.GetProductsInput{ServiceCode: aws.String("AmazonS3")})
		w.refused(err, "InvalidParameterException")
		spots, pageCount := map[string]string{}, 0
		history := &ec2.DescribeSpotPriceHistoryInput{StartTime: aws.Time(time.Now()), ProductDescriptions: []string{"Linux/UNIX"},
			MaxResults: aws.Int32(2000)}
		for pages := ec2.NewDescribeSpotPriceHistoryPaginator(w.ec2, history); pages.HasMorePages(); pageCount++ {
			page, err := pages.NextPage(ctx)
			w.must(err)
			for _, p := range page.SpotPriceHistory {
				key := string(p.InstanceType) + " " + *p.AvailabilityZone
				if spots[key] != "" {
					t.Fatalf("%s is listed twice", key)
				}
				spots[key] = *p.SpotPrice
			}
		}
		switch price := spots["m5.large us-east-1a"]; {
		case price < "0.026":
			t.Errorf(`price is %v, want at least "0.026"`, price)
		case price > "0.066":
			t.Errorf(`price is %v, want at most "0.066"`, price)
		case pageCount < 5:
			t.Errorf("pageCount is %v, want at least 5", pageCount)
		}
		yesterday, err := w.ec2.DescribeSpotPriceHistory(ctx,
			&ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []ec2types.InstanceType{"m5.large"},
				ProductDescriptions: []string{"Windows"}, AvailabilityZone: aws.String(zoneA),
				StartTime: aws.Time(time.Now().Add(-3 * time.Hour)), EndTime: aws.Time(time.Now())})
		w.must(err)
		if h := yesterday.SpotPriceHistory; len(h) != 4 || !h[0].Timestamp.After(*h[1].Timestamp) {
			t.Errorf("history %+v", h)
		}
	})
}

// The cluster is described, and no other cluster exists.
func TestCluster(t *testing.T) {
	in(t, Options{Cluster: Cluster{Name: "prod", Endpoint: "https://api", CA: "pem", Version: "1.35"}}, func(ctx context.Context, w *world) {
		out, err := w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("prod")})
		w.must(err)
		got := []string{*out.Cluster.Endpoint, *out.Cluster.Version, *out.Cluster.KubernetesNetworkConfig.ServiceIpv4Cidr,
			*out.Cluster.CertificateAuthority.Data, string(out.Cluster.Status)}
		if diff := cmp.Diff([]string{"https://api", "1.35", "10.100.0.0/16", base64.StdEncoding.EncodeToString([]byte("pem")), "ACTIVE"},
			got); diff != "" {
			t.Errorf("cluster -want +got:\n%s", diff)
		}
		_, err = w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("other")})
		w.refused(err, "ResourceNotFoundException")
		w.SetCluster(Cluster{Version: "1.36"})
		out, err = w.eks.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("prod")})
		w.must(err)
		if *out.Cluster.Version != "1.36" || *out.Cluster.Endpoint != "https://api" {
			t.Errorf("after the upgrade: %s at %s", *out.Cluster.Version, *out.Cluster.Endpoint)
		}
	})
}

// Instances are found by IDs, pages and tags, with EC2's errors.
func TestDescribeInstances(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		w.template(ctx, "nodes", nil)
		out, err := w.ec2.CreateFleet(ctx, fleetOf(12, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		ids := launched(out)
		_, err = w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids, MaxResults: aws.Int32(5)})
		w.refused(err, "InvalidParameterCombination")
		_, err = w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{ids[0], "i-00000000000000000"}})
		w.refused(err, "InvalidInstanceID.NotFound")
		_, err = w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{"x"}})
		w.refused(err, "InvalidInstanceID.Malformed")
		_, err = w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{ids[0], "i-00000000000000000"}})
		w.refused(err, "InvalidInstanceID.NotFound")
		_, err = w.ec2.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: ids[:1], DryRun: aws.Bool(true)})
		w.refused(err, "DryRunOperation")
		if s := w.state(ctx, ids[0]); s != "pending" {
			t.Errorf("after rejected terminations: %s", s)
		}
		tags := []ec2types.Tag{{Key: aws.String("Name"), Value: aws.String("node-1")}}
		_, err = w.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{ids[3], "i-00000000000000000"}, Tags: tags})
		w.refused(err, "InvalidInstanceID.NotFound")
		_, err = w.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids[3:4], Tags: tags})
		w.must(err)
		named, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: filters("tag:Name", "node-?")})
		w.must(err)
		if len(named.Reservations) != 1 || *named.Reservations[0].Instances[0].InstanceId != ids[3] {
			t.Errorf("by name: %+v", named.Reservations)
		}
		for k := range 49 {
			_, err = w.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids[3:4],
				Tags: []ec2types.Tag{{Key: aws.String(fmt.Sprint(k)), Value: aws.String("")}}})
			w.must(err)
		}
		_, err = w.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids[3:4],
			Tags: []ec2types.Tag{{Key: aws.String("one more"), Value: aws.String("")}}})
		w.refused(err, "TagLimitExceeded")
		count, pageCount := 0, 0
		for pages := ec2.NewDescribeInstancesPaginator(w.ec2,
			&ec2.DescribeInstancesInput{MaxResults: aws.Int32(5),
				Filters: filters("instance-state-name", "pending,running")}); pages.HasMorePages(); pageCount++ {
			page, err := pages.NextPage(ctx)
			w.must(err)
			count += len(page.Reservations)
		}
		if count != 12 || pageCount != 3 {
			t.Errorf("%d instances on %d pages", count, pageCount)
		}
		w.FailBoots(1)
		out, err = w.ec2.CreateFleet(ctx, fleetOf(1, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		w.pass(time.Minute)
		failed, err := w.ec2.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: launched(out)})
		w.must(err)
		if i := failed.Reservations[0].Instances[0]; i.State.Name != "terminated" || *i.StateReason.Code != "Client.InternalError" {
			t.Errorf("an instance that does not boot is %v because %v", i.State.Name, i.StateReason)
		}
	})
}

// Launch templates are found and deleted. RunInstances returns the result of a dry run.
func TestTemplates(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		name := aws.String("nodes")
		_, err := w.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: name,
			LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String(w.al2023(ctx, "x86_64"))},
			TagSpecifications: []ec2types.TagSpecification{{ResourceType: "launch-template",
				Tags: []ec2types.Tag{{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("sandbox")}}}}})
		w.must(err)
		found, err := w.ec2.DescribeLaunchTemplates(ctx,
			&ec2.DescribeLaunchTemplatesInput{Filters: filters("tag:eks:eks-cluster-name", "sandbox")})
		w.must(err)
		switch {
		case len(found.LaunchTemplates) != 1:
			t.Errorf("len(found.LaunchTemplates) is %v, want 1, templates %+v", len(found.LaunchTemplates), found.LaunchTemplates)
		case *found.LaunchTemplates[0].LaunchTemplateName != "nodes":
			t.Errorf(`*found.LaunchTemplates[0].LaunchTemplateName is %v, want "nodes", templates %+v`,
				*found.LaunchTemplates[0].LaunchTemplateName, found.LaunchTemplates)
		case *found.LaunchTemplates[0].LatestVersionNumber != 1:
			t.Errorf("*found.LaunchTemplates[0].LatestVersionNumber is %v, want 1, templates %+v",
				*found.LaunchTemplates[0].LatestVersionNumber, found.LaunchTemplates)
		}
		run := &ec2.RunInstancesInput{DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			InstanceType: "m5.large", SubnetId: aws.String(w.private(zoneA)),
			LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: name, Version: aws.String("$Latest")}}
		_, err = w.ec2.RunInstances(ctx, run)
		w.refused(err, "DryRunOperation")
		run.SubnetId = aws.String("subnet-0")
		_, err = w.ec2.RunInstances(ctx, run)
		w.refused(err, "InvalidSubnetID.NotFound")
		run.DryRun, run.SubnetId = nil, aws.String(w.private(zoneA))
		run.MinCount, run.MaxCount = aws.Int32(2), aws.Int32(2)
		_, err = w.ec2.RunInstances(ctx, run)
		w.refused(err, "UnsupportedOperation")
		run.MinCount = aws.Int32(1)
		ran, err := w.ec2.RunInstances(ctx, run)
		w.must(err)
		if len(ran.Instances) != 2 || ran.Instances[0].InstanceType != "m5.large" || *ran.Instances[0].SubnetId != *run.SubnetId {
			t.Errorf("RunInstances launches %+v", ran.Instances)
		}
		_, err = w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: name})
		w.must(err)
		_, err = w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: name})
		w.refused(err, "InvalidLaunchTemplateName.NotFoundException")
		_, err = w.ec2.DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"nodes"}})
		w.refused(err, "InvalidLaunchTemplateName.NotFoundException")
	})
}

// Reservations and placement groups are listed. A launch uses the reservation that it targets.
func TestReservations(t *testing.T) {
	in(t, Options{}, func(ctx context.Context, w *world) {
		id := w.AddReservation(CapacityReservation{Type: "m5.large", Zone: zoneA, Total: 2, Criteria: "targeted",
			Tags: map[string]string{"team": "a"}})
		group := w.AddPlacementGroup(PlacementGroup{Name: "racks", Strategy: "partition", Partitions: 3})
		w.template(ctx, "nodes", func(d *ec2types.RequestLaunchTemplateData) {
			d.CapacityReservationSpecification = &ec2types.LaunchTemplateCapacityReservationSpecificationRequest{CapacityReservationPreference: "capacity-reservations-only",
				CapacityReservationTarget: &ec2types.CapacityReservationTarget{CapacityReservationId: &id}}
		})
		w.must(w.Drain("m5.large", "", "", 0))
		out, err := w.ec2.CreateFleet(ctx, fleetOf(3, onDemandType, w.way("m5.large", zoneA)))
		w.must(err)
		if len(launched(out)) != 2 || *out.Errors[0].ErrorCode != "ReservationCapacityExceeded" {
			t.Errorf("launched %v, errors %+v", launched(out), out.Errors)
		}
		found, err := w.ec2.DescribeCapacityReservations(ctx,
			&ec2.DescribeCapacityReservationsInput{Filters: filters("state", "active", "tag:team", "a", "instance-match-criteria", "targeted")})
		w.must(err)
		switch r := found.CapacityReservations; {
		case len(r) != 1:
			t.Errorf("len(r) is %v, want 1, reservations %+v", len(r), r)
		case *r[0].AvailableInstanceCount != 0:
			t.Errorf("*r[0].AvailableInstanceCount is %v, want 0, reservations %+v", *r[0].AvailableInstanceCount, r)
		case *r[0].TotalInstanceCount != 2:
			t.Errorf("*r[0].TotalInstanceCount is %v, want 2, reservations %+v", *r[0].TotalInstanceCount, r)
		}
		groups, err := w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"racks"}})
		w.must(err)
		switch g := groups.PlacementGroups; {
		case len(g) != 1:
			t.Errorf("len(g) is %v, want 1, groups %+v", len(g), g)
		case *g[0].GroupId != group:
			t.Errorf("*g[0].GroupId is %v, want %v, groups %+v", *g[0].GroupId, group, g)
		case *g[0].PartitionCount != 3:
			t.Errorf("*g[0].PartitionCount is %v, want 3, groups %+v", *g[0].PartitionCount, g)
		}
		_, err = w.ec2.DescribePlacementGroups(ctx, &ec2.DescribePlacementGroupsInput{GroupNames: []string{"none"}})
		w.refused(err, "InvalidPlacementGroup.Unknown")
	})
}
