"""Classes, inheritance, properties and string formatting: a shop's inventory over many days."""


class Article(object):
    def __init__(self, number, price):
        self.number = number
        self.price = price
        self.stock = 0

    @property
    def value(self):
        return self.price * self.stock

    def take(self, count):
        taken = min(count, self.stock)
        self.stock -= taken
        return taken

    def describe(self):
        return "%05d %-12s %8d" % (self.number, type(self).__name__, self.value)


class Perishable(Article):
    def __init__(self, number, price, days):
        Article.__init__(self, number, price)
        self.days = days
        self.age = 0

    def take(self, count):
        if self.age > self.days:
            self.stock = 0
        return Article.take(self, count)

    def describe(self):
        return "%s age {0:3d} of {1:<3d}".format(self.age, self.days) % Article.describe(self)


class Bundle(Article):
    def __init__(self, number, parts):
        Article.__init__(self, number, sum(part.price for part in parts))
        self.parts = parts

    def take(self, count):
        return min([part.take(count) for part in self.parts])


def open_shop(size):
    articles = []
    for number in range(size):
        if number % 7 == 6:
            articles.append(Bundle(number, articles[-3:]))
        elif number % 3 == 0:
            articles.append(Perishable(number, 100 + number % 50, 5 + number % 11))
        else:
            articles.append(Article(number, 50 + number * 37 % 1000))
    return articles


def run():
    articles = open_shop(300)
    sold = 0
    lines = []
    for day in range(60):
        for article in articles:
            if isinstance(article, Perishable):
                article.age += 1
            if (day + article.number) % 9 == 0:
                article.stock += 20
                if isinstance(article, Perishable):
                    article.age = 0
            sold += article.take((day * 31 + article.number * 17) % 5)
        lines = [article.describe() for article in articles]
    return "%d\n%s" % (sold, "\n".join(lines))
