// franz-go: producers with every codec, a group, a transaction, admin calls.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// encryption is nil without the arguments for TLS: certificate, key log, and perhaps 1.2.
var encryption = tlsConfig()

func tlsConfig() *tls.Config {
	if len(os.Args) <= 4 {
		return nil
	}
	certificate, err := os.ReadFile(os.Args[3])
	check(err)
	keyLog, err := os.OpenFile(os.Args[4], os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	check(err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certificate)
	config := &tls.Config{
		RootCAs: trusted, KeyLogWriter: keyLog, ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
	if len(os.Args) > 5 && os.Args[5] == "1.2" {
		config.MaxVersion = tls.VersionTLS12
	}
	return config
}

func client(name string, more ...kgo.Opt) *kgo.Client {
	common := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(os.Args[1], ",")...),
		kgo.ClientID(name),
		kgo.AllowAutoTopicCreation(),
		kgo.FetchMaxWait(200 * time.Millisecond),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	}
	if encryption != nil {
		common = append(common, kgo.DialTLSConfig(encryption))
	}
	made, err := kgo.NewClient(append(common, more...)...)
	check(err)
	return made
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	topic := os.Args[2]
	if encryption != nil {
		produce(ctx, topic, map[string]kgo.CompressionCodec{"none": kgo.NoCompression(), "lz4": kgo.Lz4Compression()})
		return
	}
	produce(ctx, topic, map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	})
	consume(ctx, topic)
	transact(ctx, topic)
	administer(ctx, topic)
}

func produce(ctx context.Context, topic string, codecs map[string]kgo.CompressionCodec) {
	for name, codec := range codecs {
		producer := client("franz-"+name, kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(20*time.Millisecond))
		var records []*kgo.Record
		for number := range 5 {
			records = append(records, &kgo.Record{
				Topic: topic, Key: fmt.Appendf(nil, "key-%d", number),
				Value:   []byte(strings.Repeat(name+" ", 10)),
				Headers: []kgo.RecordHeader{{Key: "codec", Value: []byte(name)}},
			})
		}
		check(producer.ProduceSync(ctx, records...).FirstErr())
		producer.Close()
	}
}

func consume(ctx context.Context, topic string) {
	group := []kgo.Opt{kgo.ConsumerGroup(topic + ".group"), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit()}
	first := client("franz-first", group...)
	second := client("franz-second", append(group, kgo.InstanceID("static"))...)
	for got := 0; got < 25; {
		for _, member := range []*kgo.Client{first, second} {
			short, done := context.WithTimeout(ctx, 300*time.Millisecond)
			got += member.PollFetches(short).NumRecords()
			done()
		}
		check(ctx.Err())
	}
	check(first.CommitUncommittedOffsets(ctx))
	first.Close()
	second.Close()
}

func transact(ctx context.Context, topic string) {
	producer := client("franz-tx", kgo.TransactionalID(topic+".tx"))
	for _, commit := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort} {
		check(producer.BeginTransaction())
		check(producer.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte("in a transaction")}).FirstErr())
		check(producer.EndTransaction(ctx, commit))
	}
	producer.Close()
}

func administer(ctx context.Context, topic string) {
	admin := client("franz-admin")
	defer admin.Close()
	create := kmsg.NewPtrCreateTopicsRequest()
	made := kmsg.NewCreateTopicsRequestTopic()
	made.Topic, made.NumPartitions, made.ReplicationFactor = topic+".made", 2, 1
	create.Topics = append(create.Topics, made)
	describe := kmsg.NewPtrDescribeConfigsRequest()
	resource := kmsg.NewDescribeConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	describe.Resources = append(describe.Resources, resource)
	groups := kmsg.NewPtrDescribeGroupsRequest()
	groups.Groups = []string{topic + ".group"}
	remove := kmsg.NewPtrDeleteTopicsRequest()
	gone := kmsg.NewDeleteTopicsRequestTopic()
	gone.Topic = kmsg.StringPtr(topic + ".made")
	remove.Topics, remove.TopicNames = append(remove.Topics, gone), []string{topic + ".made"}
	for _, request := range []kmsg.Request{
		create, kmsg.NewPtrMetadataRequest(), describe, groups, kmsg.NewPtrListGroupsRequest(),
		kmsg.NewPtrDescribeClusterRequest(), kmsg.NewPtrDescribeLogDirsRequest(),
		kmsg.NewPtrListTransactionsRequest(), kmsg.NewPtrDescribeClientQuotasRequest(),
		kmsg.NewPtrDescribeUserSCRAMCredentialsRequest(), kmsg.NewPtrListPartitionReassignmentsRequest(), remove,
	} {
		_, err := admin.Request(ctx, request)
		check(err)
	}
}
