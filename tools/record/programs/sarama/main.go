// sarama: a synchronous and an idempotent producer, a transaction, a group of two, the ends of partitions.
// Over TLS: two producers.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/IBM/sarama"
)

const rounds, partitions = 8, 3

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

// encryption is nil without the arguments for TLS: certificate and key log.
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
	return &tls.Config{
		RootCAs: trusted, KeyLogWriter: keyLog, ClientSessionCache: tls.NewLRUClientSessionCache(8),
	}
}

func config(name string) *sarama.Config {
	made := sarama.NewConfig()
	made.ClientID = name
	made.Version = sarama.V3_6_0_0
	if encryption != nil {
		made.Net.TLS.Enable, made.Net.TLS.Config = true, encryption
	}
	made.Producer.Return.Successes = true
	made.Producer.RequiredAcks = sarama.WaitForAll
	made.Consumer.Offsets.Initial = sarama.OffsetOldest
	made.Consumer.Offsets.AutoCommit.Interval = 200 * time.Millisecond
	made.Consumer.MaxWaitTime = 200 * time.Millisecond
	made.Consumer.IsolationLevel = sarama.ReadCommitted
	return made
}

type reader struct{ got *atomic.Int64 }

func (reader) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (reader) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (r reader) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			session.MarkMessage(message, "")
			r.got.Add(1)
		case <-session.Context().Done():
			return nil
		}
	}
}

func produce(brokers []string, topic string, name string, options *sarama.Config) {
	producer, err := sarama.NewSyncProducer(brokers, options)
	check(err)
	defer func() { check(producer.Close()) }()
	for round := range rounds {
		if options.Producer.Transaction.ID != "" {
			check(producer.BeginTxn())
		}
		var messages []*sarama.ProducerMessage
		for number := range partitions {
			messages = append(messages, &sarama.ProducerMessage{
				Topic: topic, Key: sarama.StringEncoder(fmt.Sprintf("key-%d", number)),
				Value:   sarama.StringEncoder(fmt.Sprintf("%s %d", name, round)),
				Headers: []sarama.RecordHeader{{Key: []byte("from"), Value: []byte(name)}},
			})
		}
		check(producer.SendMessages(messages))
		if options.Producer.Transaction.ID != "" {
			check(producer.CommitTxn())
		}
	}
}

func main() {
	brokers, topic := strings.Split(os.Args[1], ","), os.Args[2]
	if encryption != nil {
		produce(brokers, topic, "first", config("sarama-first"))
		produce(brokers, topic, "second", config("sarama-second"))
		return
	}
	admin, err := sarama.NewClusterAdmin(brokers, config("sarama-admin"))
	check(err)
	check(admin.CreateTopic(topic, &sarama.TopicDetail{NumPartitions: partitions, ReplicationFactor: 1}, false))
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	var got atomic.Int64
	done := make(chan struct{}, 2)
	for _, name := range []string{"sarama-first", "sarama-second"} {
		group, err := sarama.NewConsumerGroup(brokers, topic+".group", config(name))
		check(err)
		go func() {
			for ctx.Err() == nil {
				_ = group.Consume(ctx, []string{topic}, reader{&got})
			}
			check(group.Close())
			done <- struct{}{}
		}()
	}
	idempotent, transactional := config("sarama-idempotent"), config("sarama-tx")
	for _, each := range []*sarama.Config{idempotent, transactional} {
		each.Producer.Idempotent, each.Net.MaxOpenRequests = true, 1
	}
	transactional.Producer.Transaction.ID = topic + ".tx"
	produce(brokers, topic, "plain", config("sarama-plain"))
	produce(brokers, topic, "idempotent", idempotent)
	produce(brokers, topic, "transactional", transactional)
	client, err := sarama.NewClient(brokers, config("sarama-ends"))
	check(err)
	for got.Load() < 3*rounds*partitions && ctx.Err() == nil {
		for partition := range int32(partitions) {
			_, err = client.GetOffset(topic, partition, sarama.OffsetNewest)
			check(err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	check(ctx.Err())
	cancel()
	<-done
	<-done
	check(client.Close())
	check(admin.Close())
}
